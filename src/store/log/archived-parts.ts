import { refuse } from '../../base/errors.ts';
import type { Opening } from '../../model/ledger.ts';
import { pairs, type RecordStore } from '../script.ts';

/** Anything that a stream holds, with its place in it. */
export interface StreamEntry {
  /** Id in the stream: it grows. */
  readonly entry: string;
  /** Milliseconds. */
  readonly at: number;
}

/** A stream whose ended days are moved to the object store. */
export interface EntryStream<T extends StreamEntry> {
  readonly kind: 'ledger' | 'paid' | 'free';
  readonly id: string;
  readonly stream: string;
  readonly list: string;
  readonly read: (entry: string, fields: Readonly<Record<string, string>>) => T;
}

/** Entries of a stream that were moved together. */
export interface ArchivedPart {
  /** Key of their object. */
  readonly object: string;
  /** The newest of them. */
  readonly last: string;
  /** For a ledger: the balances after them. */
  readonly closing?: ClosingBalances;
}

/** Balances as JSON. */
export type ClosingBalances = Omit<Opening, 'packs'> & {
  readonly packs: readonly (readonly [id: string, pack: { readonly total: number; readonly used: number }])[];
};

/** Gives the entries that were moved to an object; `null` when it is not there. */
export type ReadArchivedPart = (object: string) => Promise<readonly unknown[] | null>;

/** Where the first entries of a stream begin. */
export const beforeFirstEntry = '0-0';

/** Entries of a stream behind one of them, else from its beginning, a bounded number. */
export async function readOldestEntries<T extends StreamEntry>(
  store: RecordStore,
  { stream, read }: EntryStream<T>,
  most: number,
  { behind = beforeFirstEntry, last = '+' } = {},
): Promise<T[]> {
  return parseEntries(await store.connection.read(['XRANGE', stream, `(${behind}`, last, 'COUNT', String(most)]), read);
}

/** Entries newest first: those of the record, then, where they can be opened, those that were moved. */
export async function readNewestEntries<T extends StreamEntry>(
  store: RecordStore,
  origin: EntryStream<T>,
  limit: number,
  open?: ReadArchivedPart,
): Promise<T[]> {
  const { stream, read } = origin;
  const found = parseEntries(
    await store.connection.read(['XREVRANGE', stream, '+', '-', 'COUNT', String(limit)]),
    read,
  );
  if (open === undefined || found.length >= limit) return found;
  // What is moved just now was perhaps seen already.
  const seen = new Set(found.map(({ entry }) => entry));
  for (const { object } of (await listArchivedParts(store, origin)).reverse()) {
    const moved = await readArchivedEntries(origin, object, open);
    found.push(...moved.toReversed().filter(({ entry }) => !seen.has(entry)));
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}

/** Entries that were moved to an object. Lines whose time is over may be gone meanwhile; a part of a ledger may not. */
async function readArchivedEntries<T extends StreamEntry>(
  { kind }: EntryStream<T>,
  object: string,
  open: ReadArchivedPart,
): Promise<readonly T[]> {
  const found = (await open(object)) as readonly T[] | null;
  if (found === null && kind === 'ledger') throw refuse('unavailable', `${object} is not in the object store`);
  return found ?? [];
}

/** What was moved of a stream, oldest first. */
export async function listArchivedParts(
  store: RecordStore,
  { list }: Pick<EntryStream<StreamEntry>, 'list'>,
): Promise<ArchivedPart[]> {
  const found = (await store.connection.read(['LRANGE', list, '0', '-1'])) as string[];
  return found.map((json) => JSON.parse(json) as ArchivedPart);
}

/** What was moved of a stream last. */
export async function newestArchivedPart(
  store: RecordStore,
  { list }: Pick<EntryStream<StreamEntry>, 'list'>,
): Promise<ArchivedPart | null> {
  const json = await store.connection.read(['LINDEX', list, '-1']);
  return json === null ? null : (JSON.parse(String(json)) as ArchivedPart);
}

/**
 * Key of the object for what comes behind an entry. It depends on nothing that changes until it is noted, so whoever
 * repeats a move that broke off finds what was written before.
 */
export function archivedPartKey({ kind, id }: Pick<EntryStream<StreamEntry>, 'kind' | 'id'>, from: string): string {
  return `days/${kind}/${id}/${from}/lines.gz`;
}

function parseEntries<T>(reply: unknown, read: EntryStream<T & StreamEntry>['read']): T[] {
  return (reply as [string, string[]][]).map(([entry, flat]) => read(entry, pairs(flat)));
}
