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

/** Lines that are read for a page with a filter, which may be short although more may follow: one call of Redis. */
const maxRead = 5_000;

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
  const ofEach = isWanted === undefined ? 0 : Math.floor(maxRead / Math.max(1, streams.length));
  const { found, isEnd } = await readMerged(store, streams, first, Math.max(ofEach, limit + 1), open);
  const lines: NamedLine[] = [];
  let after = first;
  for (const { line, alias, cursor } of found) {
    const { entry: _, ...shown } = line;
    const named = { ...shown, key: alias };
    if (isWanted?.(named) ?? true) {
      if (lines.length === limit) return { lines, next: after };
      lines.push(named);
    }
    after = cursor;
  }
  return { lines, next: isEnd ? null : after };
}

interface MergedLine {
  readonly line: StoredLogLine;
  readonly alias: string;
  readonly cursor: LineCursor;
}

/**
 * Returns the lines after a cursor of all streams, newest first, as far as `count` of each tell: those after the oldest one of a stream that
 * goes on are not known to be next. At least `count` lines, or all that there are.
 */
async function readMerged(
  store: RecordStore,
  streams: readonly { readonly origin: EntryStream<StoredLogLine>; readonly alias: string }[],
  after: LineCursor | null,
  count: number,
  open: ReadArchivedPart,
): Promise<{ readonly found: readonly MergedLine[]; readonly isEnd: boolean }> {
  const bounds = streams.map(({ origin }) => boundOf(origin.stream, after));
  const replies = await store.connection.readAll([
    ...streams.map(({ origin }, n): ReadCommand => {
      return ['XREVRANGE', origin.stream, bounds[n]!, '-', 'COUNT', String(count)];
    }),
    ...streams.map(({ origin }): ReadCommand => ['LRANGE', origin.list, '0', '-1']),
  ]);
  const found: MergedLine[][] = [];
  // One after the other: an account may have a thousand keys, and the object store serves others too.
  for (const [n, { origin, alias }] of streams.entries()) {
    const kept = (replies[n] as [string, string[]][]).map(([entry, flat]) => origin.read(entry, pairs(flat)));
    const parts = (replies[streams.length + n] as string[]).map((json) => JSON.parse(json) as ArchivedPart);
    const bound = kept.length > 0 ? `(${kept.at(-1)!.entry}` : bounds[n]!;
    const archived = await readArchivedEntriesBefore(origin, parts, bound, count - kept.length, open);
    found.push(
      [...kept, ...archived].map((line) => ({ line, alias, cursor: { entry: line.entry, stream: origin.stream } })),
    );
  }
  const lastOfThose = new Set(found.flatMap((lines) => (lines.length < count ? [] : lines.slice(-1))));
  const merged = found
    .flat()
    .sort((a, b) => compareEntries(b.line.entry, a.line.entry) || (a.cursor.stream < b.cursor.stream ? -1 : 1));
  if (lastOfThose.size === 0) return { found: merged, isEnd: true };
  return { found: merged.slice(0, merged.findIndex((line) => lastOfThose.has(line)) + 1), isEnd: false };
}

/** Two streams may have entries with one id: those of streams with a later name follow. */
function boundOf(stream: string, after: LineCursor | null): string {
  if (after === null) return '+';
  return stream > after.stream ? after.entry : `(${after.entry}`;
}
