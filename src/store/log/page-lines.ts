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

/** Place in the merged request logs of several keys: the lines after it are older. */
export interface LinePlace {
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
  readonly after: LinePlace | null;
  readonly isWanted: (line: NamedLine) => boolean;
  /** Reads archived days. */
  readonly open: ReadArchivedPart;
}

/** Lines that one page looks through: a page with a rare filter may be short although more may follow. */
const maxLooked = 5_000;

/** Returns id and alias of every key of an account. The id of a key is the beginning of its hash. */
export async function listKeyNames(store: RecordStore, accountId: string): Promise<NamedKey[]> {
  const ring = pairs(await store.connection.read(['HGETALL', keys.keyring(accountId)]));
  return Object.entries(ring).map(([alias, hash]) => ({ id: keyIdOf(hash), alias }));
}

/** Returns request-log lines of keys after a place, newest first, and the place behind them; `null` at the end. */
export async function pageLines(
  store: RecordStore,
  ofKeys: readonly NamedKey[],
  { limit, after: first, isWanted, open }: WantedLines,
): Promise<{ lines: NamedLine[]; next: LinePlace | null }> {
  const streams = ofKeys.flatMap(({ id, alias }) =>
    [freeLineStream(id), paidLineStream(id)].map((origin) => ({ origin, alias })),
  );
  const lines: NamedLine[] = [];
  let after = first;
  for (let looked = 0; looked < maxLooked; ) {
    const page = await readMerged(store, streams, after, limit + 1, open);
    for (const { line, alias, place } of page) {
      const { entry: _, ...shown } = line;
      const named = { ...shown, key: alias };
      if (isWanted(named)) {
        if (lines.length === limit) return { lines, next: after };
        lines.push(named);
      }
      after = place;
    }
    looked += page.length;
    if (page.length <= limit) return { lines, next: null };
  }
  return { lines, next: after };
}

interface MergedLine {
  readonly line: StoredLogLine;
  readonly alias: string;
  readonly place: LinePlace;
}

/** Returns the `count` newest lines after a place, of all streams. */
async function readMerged(
  store: RecordStore,
  streams: readonly { readonly origin: EntryStream<StoredLogLine>; readonly alias: string }[],
  after: LinePlace | null,
  count: number,
  open: ReadArchivedPart,
): Promise<MergedLine[]> {
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
      [...kept, ...archived].map((line) => ({ line, alias, place: { entry: line.entry, stream: origin.stream } })),
    );
  }
  return found
    .flat()
    .sort((a, b) => compareEntries(b.line.entry, a.line.entry) || (a.place.stream < b.place.stream ? -1 : 1))
    .slice(0, count);
}

/** Two streams may have entries with one id: those of streams with a later name follow. */
function boundOf(stream: string, after: LinePlace | null): string {
  if (after === null) return '+';
  return stream > after.stream ? after.entry : `(${after.entry}`;
}
