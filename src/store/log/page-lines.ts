import { keyIdOf } from '../../model/api-key.ts';
import { keys } from '../keys.ts';
import type { ReadCommand } from '../redis/connection.ts';
import { pairs, type RecordStore } from '../script.ts';
import {
  type ArchivedPart,
  compareEntries,
  type EntryStream,
  type ReadArchivedPart,
  readArchivedEntriesBefore,
} from './archived-parts.ts';
import { freeLineStream, paidLineStream, type StoredLogLine } from './read-lines.ts';
import type { LogLine } from './write-lines.ts';

/** Position in the merged request logs of several keys: the lines after it are older. */
export interface LineCursor {
  readonly entry: string;
  readonly stream: string;
}

interface NamedKey {
  readonly id: string;
  readonly alias: string;
}

export type NamedLine = LogLine & { readonly key: string };

interface WantedLines {
  readonly limit: number;
  readonly after: LineCursor | null;
  /** Chooses lines; absent where every line is wanted. */
  readonly isWanted?: ((line: NamedLine) => boolean) | undefined;
  readonly open: ReadArchivedPart;
}

/** Lines that are read for a page at first, and that a page with a filter looks through although more may follow. */
const maxLooked = 5_000;
/** Streams whose next lines are wanted within so many lines are read on together. */
const linesAhead = 1_000;
/** An archived part is read whole. */
const archivedAtOnce = 1_000;

/** Returns id and alias of every key of an account. The id of a key is the beginning of its hash. */
export async function listKeyNames(store: RecordStore, accountId: string): Promise<NamedKey[]> {
  const ring = pairs(await store.connection.read(['HGETALL', keys.keyring(accountId)]));
  return Object.entries(ring).map(([alias, hash]) => ({ id: keyIdOf(hash), alias }));
}

/** Returns request-log lines of keys after a cursor, newest first, and the cursor behind them; `null` at the end. */
export async function pageLines(
  store: RecordStore,
  ofKeys: readonly NamedKey[],
  { limit, after: first, isWanted, open }: WantedLines,
): Promise<{ lines: NamedLine[]; next: LineCursor | null }> {
  const streams = ofKeys.flatMap(({ id, alias }) =>
    [freeLineStream(id), paidLineStream(id)].map((origin) => ({ origin, alias })),
  );
  const ofEach = Math.ceil(maxLooked / Math.max(1, streams.length));
  const count = isWanted === undefined ? Math.min(ofEach, limit + 1) : ofEach;
  const lines: NamedLine[] = [];
  let after = first;
  let looked = 0;
  for await (const { line, of } of newestFirst({ store, open }, streams, first, count)) {
    const { entry, ...shown } = line;
    const named = { ...shown, key: of.alias };
    const isOver = isWanted !== undefined && looked++ === maxLooked;
    if (isOver) return { lines, next: after };
    if (isWanted?.(named) ?? true) {
      if (lines.length === limit) return { lines, next: after };
      lines.push(named);
    }
    after = { entry, stream: of.origin.stream };
  }
  return { lines, next: null };
}

interface LogParts {
  readonly store: RecordStore;
  readonly open: ReadArchivedPart;
}

interface NamedStream {
  readonly origin: EntryStream<StoredLogLine>;
  readonly alias: string;
}

interface MergedLine {
  readonly entry: string;
  readonly of: NamedStream;
  readonly line: StoredLogLine;
}

/** Lines of a stream that were not read yet: those before a bound, of which so many are read next. */
interface Unread {
  readonly of: NamedStream;
  readonly bound: string;
  readonly count: number;
}

/** A line, or the place of the newest one of those that were not read. Places of one stream stand in their order. */
interface Place {
  readonly entry: string;
  readonly of: NamedStream;
  readonly line?: StoredLogLine;
  readonly kept?: Unread;
  readonly archived?: Unread & { readonly parts: readonly ArchivedPart[] };
}

/** Yields the lines of all streams after a cursor, newest first. At first it reads so many of each stream, then more of those that it used up. */
async function* newestFirst(
  log: LogParts,
  streams: readonly NamedStream[],
  after: LineCursor | null,
  count: number,
): AsyncGenerator<MergedLine> {
  const begun = streams.map((of) => ({ of, bound: boundOf(of.origin.stream, after), count }));
  let places = await readKept(log, begun);
  for (;;) {
    places.sort(compareThem);
    const end = places.findIndex(({ line }) => line === undefined);
    for (const { line, ...place } of places.slice(0, end === -1 ? undefined : end)) if (line) yield { ...place, line };
    if (end === -1) return;
    const { archived } = places[end]!;
    const near = places
      .slice(end, end + (archived ? 1 : linesAhead))
      .flatMap((place) => (place.kept ? [place.kept] : []));
    const found = archived ? await readArchived(log, archived) : await readKept(log, near);
    const read = new Set<unknown>(archived ? [archived] : near);
    places = [...found, ...places.slice(end).filter((place) => !read.has(place.kept ?? place.archived))];
  }
}

function compareThem(a: Place, b: Place): number {
  const [one, other] = [a.of.origin.stream, b.of.origin.stream];
  return compareEntries(b.entry, a.entry) || (one === other ? 0 : one < other ? -1 : 1);
}

/** Reads on in streams, in one call of Redis. */
async function readKept(log: LogParts, wanted: readonly Unread[]): Promise<Place[]> {
  const replies = await log.store.connection.readAll([
    ...wanted.map(({ of, bound, count }): ReadCommand => {
      return ['XREVRANGE', of.origin.stream, bound, '-', 'COUNT', String(count)];
    }),
    ...wanted.map(({ of }): ReadCommand => ['LRANGE', of.origin.list, '0', '-1']),
  ]);
  return wanted.flatMap(({ of, bound, count }, n): Place[] => {
    const found = (replies[n] as [string, string[]][]).map(([entry, flat]) => of.origin.read(entry, pairs(flat)));
    const lines = found.map((line) => ({ entry: line.entry, of, line }));
    const last = found.at(-1)?.entry;
    const behind = last === undefined ? bound : `(${last}`;
    if (last !== undefined && found.length === count)
      return [...lines, { entry: last, of, kept: { of, bound: behind, count: 2 * count } }];
    const parts = (replies[wanted.length + n] as string[]).map((json) => JSON.parse(json) as ArchivedPart);
    return [...lines, ...archivedPlace(of, parts, behind)];
  });
}

/** Returns the place of the newest archived line before a bound; none where nothing is archived. */
function archivedPlace(of: NamedStream, parts: readonly ArchivedPart[], bound: string): Place[] {
  const newest = parts.at(-1)?.last;
  if (newest === undefined) return [];
  const limit = bound === '+' ? newest : bound.replace('(', '');
  const entry = compareEntries(newest, limit) < 0 ? newest : limit;
  return [{ entry, of, archived: { of, bound, count: archivedAtOnce, parts } }];
}

async function readArchived(
  { open }: LogParts,
  { of, parts, bound, count }: NonNullable<Place['archived']>,
): Promise<Place[]> {
  const found = await readArchivedEntriesBefore(of.origin, parts, bound, count, open);
  const lines = found.map((line) => ({ entry: line.entry, of, line }));
  return found.length < count ? lines : [...lines, ...archivedPlace(of, parts, `(${found.at(-1)!.entry}`)];
}

/** Two streams may have entries with one id: those of streams with a later name follow. */
function boundOf(stream: string, after: LineCursor | null): string {
  if (after === null) return '+';
  return stream > after.stream ? after.entry : `(${after.entry}`;
}
