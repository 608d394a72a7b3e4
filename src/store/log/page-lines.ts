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

/** Lines that are read at once for a page, and that a page with a filter looks through although more may follow. */
const maxLooked = 5_000;
/** Streams whose next lines are wanted within so many lines are read on together. */
const linesAhead = 1_000;
/** Archived lines that are kept of all streams and, at least, of each one: as many as each of 1,000 keys has. Objects are read whole. */
const archivedLines = { ofAll: 20_000, ofEach: 100 };

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
  const maxLines = isWanted === undefined ? limit + 1 : maxLooked + 1;
  const lines: NamedLine[] = [];
  let after = first;
  let looked = 0;
  for await (const { line, of } of newestFirst({ store, open, maxLines }, streams, first)) {
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
  readonly maxLines: number;
}

interface NamedStream {
  readonly origin: EntryStream<StoredLogLine>;
  readonly alias: string;
}

interface MergedLine {
  readonly of: NamedStream;
  readonly line: StoredLogLine;
}

/** Lines of a stream before a bound, none newer than `entry`, in Redis or, where parts are named, in these. */
interface Unread {
  readonly entry: string;
  readonly bound: string;
  readonly parts?: readonly ArchivedPart[];
}

/** Lines of a stream that were read, oldest first, and those that follow them. */
interface StreamReading {
  readonly of: NamedStream;
  readonly lines: StoredLogLine[];
  readonly unread: Unread | null;
}

/** Yields the lines of all streams after a cursor, newest first. At first it reads a few of each stream, then more of those that it used up. */
async function* newestFirst(
  log: LogParts,
  streams: readonly NamedStream[],
  after: LineCursor | null,
): AsyncGenerator<MergedLine> {
  const begun = streams.map((of) => ({ of, bound: boundOf(of.origin.stream, after) }));
  let readings = (await readKept(log, begun)).filter((reading) => newestOf(reading) !== undefined).sort(compareNewest);
  for (let first = readings.shift(); first !== undefined; first = readings.shift()) {
    const { of, lines, unread } = first;
    const line = lines.pop();
    if (line) {
      yield { of, line };
      putBack(readings, first);
    } else if (unread?.parts) {
      putBack(readings, await readArchived(log, of, unread, streams.length));
    } else {
      const near = [first, ...nearOf(readings, log.maxLines)];
      const others = readings.filter((reading) => !near.includes(reading));
      const found = await readKept(
        log,
        near.map((reading) => ({ of: reading.of, bound: reading.unread!.bound })),
      );
      const whole = found.map((more, n) => ({ ...more, lines: [...more.lines, ...near[n]!.lines] }));
      readings = [...others, ...whole].filter((reading) => newestOf(reading) !== undefined).sort(compareNewest);
    }
  }
}

function newestOf({ lines, unread }: StreamReading): string | undefined {
  return lines.at(-1)?.entry ?? unread?.entry;
}

function compareNewest(a: StreamReading, b: StreamReading): number {
  return compareEntries(newestOf(b)!, newestOf(a)!) || (a.of.origin.stream < b.of.origin.stream ? -1 : 1);
}

/** Puts a stream into its place among others that are in order, unless it has ended. */
function putBack(readings: StreamReading[], reading: StreamReading): void {
  if (newestOf(reading) === undefined) return;
  let [from, to] = [0, readings.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compareNewest(readings[middle]!, reading) < 0) from = middle + 1;
    else to = middle;
  }
  readings.splice(from, 0, reading);
}

/** Returns the streams whose next lines in Redis are wanted for a page of at most so many. */
function nearOf(readings: readonly StreamReading[], maxLines: number): StreamReading[] {
  const entries = readings.flatMap(({ lines }) => lines.map(({ entry }) => entry));
  const last = entries.sort((a, b) => compareEntries(b, a))[Math.min(linesAhead, maxLines)];
  return readings.filter(({ unread }) => {
    return unread && !unread.parts && (last === undefined || compareEntries(unread.entry, last) > 0);
  });
}

/** Reads on in streams, in one call of Redis. */
async function readKept(
  { store, maxLines }: LogParts,
  wanted: readonly { readonly of: NamedStream; readonly bound: string }[],
): Promise<StreamReading[]> {
  const count = Math.min(maxLines, Math.ceil(maxLooked / Math.max(1, wanted.length)));
  const replies = await store.connection.readAll([
    ...wanted.map(({ of, bound }): ReadCommand => {
      return ['XREVRANGE', of.origin.stream, bound, '-', 'COUNT', String(count)];
    }),
    ...wanted.map(({ of }): ReadCommand => ['LRANGE', of.origin.list, '0', '-1']),
  ]);
  return wanted.map(({ of, bound }, n) => {
    const found = (replies[n] as [string, string[]][]).map(([entry, flat]) => of.origin.read(entry, pairs(flat)));
    const last = found.at(-1)?.entry;
    const behind = last === undefined ? bound : `(${last}`;
    const lines = found.reverse();
    if (last !== undefined && found.length === count) return { of, lines, unread: { entry: last, bound: behind } };
    const parts = (replies[wanted.length + n] as string[]).map((json) => JSON.parse(json) as ArchivedPart);
    return { of, lines, unread: archivedBefore(behind, parts) };
  });
}

/** Returns the archived lines before a bound as not read; `null` where nothing is archived. */
function archivedBefore(bound: string, parts: readonly ArchivedPart[]): Unread | null {
  const newest = parts.at(-1)?.last;
  if (newest === undefined) return null;
  const limit = bound === '+' ? newest : bound.replace('(', '');
  return { entry: compareEntries(newest, limit) < 0 ? newest : limit, bound, parts };
}

async function readArchived(
  { open, maxLines }: LogParts,
  of: NamedStream,
  { bound, parts = [] }: Unread,
  streams: number,
): Promise<StreamReading> {
  const count = Math.min(maxLines, Math.max(archivedLines.ofEach, Math.ceil(archivedLines.ofAll / streams)));
  const lines = (await readArchivedEntriesBefore(of.origin, parts, bound, count, open)).reverse();
  const unread = lines.length < count ? null : archivedBefore(`(${lines[0]!.entry}`, parts);
  return { of, lines, unread };
}

/** Two streams may have entries with one id: those of streams with a later name follow. */
function boundOf(stream: string, after: LineCursor | null): string {
  if (after === null) return '+';
  return stream > after.stream ? after.entry : `(${after.entry}`;
}
