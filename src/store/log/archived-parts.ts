import { refuse } from '../../base/errors.ts';
import type { Opening } from '../../model/ledger.ts';
import type { CountsByDay } from '../../model/usage-history.ts';
import { pairs, type RecordStore } from '../script.ts';

export interface StreamEntry {
  /** Id in the stream, which only grows. */
  readonly entry: string;
  readonly at: number;
}

/** A stream of a ledger, a request log or an audit log, whose ended days are archived in the object store. */
export interface EntryStream<T extends StreamEntry> {
  readonly kind: 'ledger' | 'paid' | 'free' | 'audit';
  readonly id: string;
  readonly stream: string;
  /** Sorted set of the streams of its kind, by the time of their oldest entry. */
  readonly index: string;
  readonly list: string;
  /** Sorted set of archived parts that are removed with time, absent for what is kept for ever. */
  readonly expiring?: string;
  readonly read: (entry: string, fields: Readonly<Record<string, string>>) => T;
}

export interface ArchivedPart {
  readonly object: string;
  readonly last: string;
  /** Of a ledger: the balances after the newest entry. */
  readonly closing?: ClosingBalances;
  /** Of request-log lines: their counts, so that a history needs no object. */
  readonly days?: CountsByDay;
}

export type ClosingBalances = Omit<Opening, 'packs'> & {
  readonly packs: readonly (readonly [id: string, pack: { readonly total: number; readonly used: number }])[];
};

/** An object in the place of an archived part that does not hold what was written there. */
export class DamagedPart extends Error {}

/** Reads the entries of an object; `null` when the object is missing, `DamagedPart` when it cannot be read. */
export type ReadArchivedPart = (object: string) => Promise<readonly unknown[] | null>;

export const beforeFirstEntry = '0-0';

/** Returns at most `max` entries after `behind`, oldest first. */
export async function readOldestEntries<T extends StreamEntry>(
  store: RecordStore,
  { stream, read }: EntryStream<T>,
  max: number,
  { behind = beforeFirstEntry, last = '+' } = {},
): Promise<T[]> {
  const kept = await store.connection.read(['XRANGE', stream, `(${behind}`, last, 'COUNT', String(max)]);
  return kept.map(([entry, flat]) => read(entry, pairs(flat)));
}

/** Returns entries newest first, all of them or those `before` an id: those in Redis, then, where `open` is given, archived ones. */
export async function readNewestEntries<T extends StreamEntry>(
  store: RecordStore,
  origin: EntryStream<T>,
  limit: number,
  open?: ReadArchivedPart,
  before?: string,
): Promise<T[]> {
  const { stream, read } = origin;
  const first = before === undefined ? '+' : `(${before}`;
  const kept = await store.connection.read(['XREVRANGE', stream, first, '-', 'COUNT', String(limit)]);
  const found = kept.map(([entry, flat]) => read(entry, pairs(flat)));
  if (open === undefined || found.length >= limit) return found;
  const parts = await listArchivedParts(store, origin);
  // An entry that is archived during this read is in both.
  const bound = found.length > 0 ? `(${found.at(-1)!.entry}` : first;
  return [...found, ...(await readArchivedEntriesBefore(origin, parts, bound, limit - found.length, open))];
}

/** Returns up to `limit` entries of the archived parts that are older than an id (`(` before it excludes the id itself), newest first. */
export async function readArchivedEntriesBefore<T extends StreamEntry>(
  origin: EntryStream<T>,
  parts: readonly ArchivedPart[],
  bound: string,
  limit: number,
  open: ReadArchivedPart,
): Promise<T[]> {
  const isBefore = (entry: string) => {
    if (bound === '+') return true;
    const order = compareEntries(entry, bound.replace('(', ''));
    return bound.startsWith('(') ? order < 0 : order <= 0;
  };
  const found: T[] = [];
  for (let n = parts.length - 1; n >= 0 && found.length < limit; n--) {
    // A part begins behind the last entry of the part before it.
    if (n > 0 && !isBefore(parts[n - 1]!.last)) continue;
    const entries = await readArchivedEntries(origin, parts[n]!.object, open);
    found.push(...entries.toReversed().filter(({ entry }) => isBefore(entry)));
  }
  return found.slice(0, limit);
}

/** Orders ids of entries, `milliseconds-number`, by time. */
export function compareEntries(a: string, b: string): number {
  const [aMs = 0, aNumber = 0] = a.split('-').map(Number);
  const [bMs = 0, bNumber = 0] = b.split('-').map(Number);
  return aMs - bMs || aNumber - bNumber;
}

/** Reads an archived part. Expired request-log lines may be gone; a missing part of a ledger and a damaged one throw `unavailable`. */
async function readArchivedEntries<T extends StreamEntry>(
  { kind }: EntryStream<T>,
  object: string,
  open: ReadArchivedPart,
): Promise<readonly T[]> {
  const found = (await open(object).catch((error: unknown) => {
    throw error instanceof DamagedPart ? refuse('unavailable', error.message) : error;
  })) as readonly T[] | null;
  if (found === null && kind === 'ledger') throw refuse('unavailable', `${object} is not in the object store`);
  return found ?? [];
}

/** Returns the archived parts of a stream, oldest first. */
export async function listArchivedParts(
  store: RecordStore,
  { list }: Pick<EntryStream<StreamEntry>, 'list'>,
): Promise<ArchivedPart[]> {
  const found = await store.connection.read(['LRANGE', list, '0', '-1']);
  return found.map((json) => JSON.parse(json) as ArchivedPart);
}

export async function newestArchivedPart(
  store: RecordStore,
  { list }: Pick<EntryStream<StreamEntry>, 'list'>,
): Promise<ArchivedPart | null> {
  const json = await store.connection.read(['LINDEX', list, '-1']);
  return json === null ? null : (JSON.parse(json) as ArchivedPart);
}

/**
 * Returns the key of the object that holds the entries after `from`. Nothing in it changes before the part is noted, so a
 * repetition after a crash finds the object that was written before. `copy` counts the keys that hold entries of another record.
 */
export function archivedPartKey(
  { kind, id }: Pick<EntryStream<StreamEntry>, 'kind' | 'id'>,
  from: string,
  copy = 0,
): string {
  return `days/${kind}/${id}/${from}${copy === 0 ? '' : `.${copy}`}/lines.gz`;
}

/** Returns the name of an archived part in the set of those that expire: `kind/id/from`. */
export function archivedPartName(object: string): string {
  return object.split('/').slice(1, 4).join('/');
}
