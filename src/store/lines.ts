import type { Log } from '../base/log.ts';
import { type OpenDays, type Origin, type Placed, readNewest } from './days.ts';
import { listKeys } from './keyring.ts';
import { keys } from './keys.ts';
import { run, type Store } from './script.ts';
import { lineFields, writeLines } from './scripts/write-lines.ts';

/** One line of the request log. */
export interface Line {
  readonly at: number;
  readonly endpoint: string;
  readonly status: number;
  readonly duration_ms: number;
  readonly ip: string;
  readonly credits: number;
}

/** Collects the lines that carry no money and writes them in batches. */
export interface FreeLines {
  add(keyId: string, line: Line): void;
  flush(): Promise<void>;
  /** Writes what is left and stops. */
  close(): Promise<void>;
}

const flushMilliseconds = 500;
const mostWaiting = 20_000;
/** A part that fails is written again as a whole: the smaller it is, the fewer lines can be there twice. */
const mostAtOnce = 500;

/**
 * Lines are written twice a second, so a SIGKILL loses at most one second of them; lines that carry money are written by
 * the script that moves it and are never lost. `cap` lines are kept of each key.
 */
export function collectLines(store: Store, cap: number, log: Log): FreeLines {
  const waiting: { keyId: string; line: Line }[] = [];
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    if (waiting.length === 0) return;
    try {
      while (waiting.length > 0) {
        const part = waiting.slice(0, mostAtOnce);
        await writePart(store, cap, part);
        waiting.splice(0, part.length);
      }
      if (dropped > 0) log.warn('request-log lines were dropped while redis could not be reached', { lines: dropped });
      dropped = 0;
    } catch (error) {
      log.debug('request-log lines could not be written', { error });
    }
  };
  const flush = () => {
    writing = writing.then(write);
    return writing;
  };
  const timer = setInterval(flush, flushMilliseconds);
  timer.unref();
  return {
    add(keyId, line) {
      if (waiting.length < mostWaiting) waiting.push({ keyId, line });
      else dropped++;
      // What waits long is what the collector of garbage has to copy again and again.
      if (waiting.length === mostAtOnce) void flush();
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** Writes all lines of a key in one step: a command for each would cost as much as the call that it tells of. */
async function writePart(
  store: Store,
  cap: number,
  part: readonly { readonly keyId: string; readonly line: Line }[],
): Promise<void> {
  const byKey = new Map<string, string[]>();
  for (const { keyId, line } of part) {
    const values = byKey.get(keyId) ?? [];
    byKey.set(keyId, values);
    for (const name of lineFields) values.push(String(line[name]));
  }
  const writes = [...byKey].map(([keyId, values]) =>
    run(store, writeLines, { lines: keys.freeLines(keyId) }, { cap }, { args: values }),
  );
  await Promise.all(writes);
}

/** A line with its place in the record. */
export type PlacedLine = Line & Placed;

/** Lines of a key that carry money, as what is moved to the object store when their days have ended. */
export function paidLinesOf(keyId: string): Origin<PlacedLine> {
  return { kind: 'paid', id: keyId, stream: keys.paidLines(keyId), list: keys.paidDays(keyId), read: lineOf };
}

/** The other lines of a key, likewise. */
export function freeLinesOf(keyId: string): Origin<PlacedLine> {
  return { kind: 'free', id: keyId, stream: keys.freeLines(keyId), list: keys.freeDays(keyId), read: lineOf };
}

/** Newest lines first, of all keys of an account or of one alias; those that were moved too, where they can be opened. */
export async function readLines(
  store: Store,
  account: string,
  limit: number,
  { alias, open }: { readonly alias?: string | undefined; readonly open?: OpenDays } = {},
): Promise<(Line & { key: string })[]> {
  const wanted = (await listKeys(store, account)).filter((key) => alias === undefined || key.alias === alias);
  const found = await Promise.all(
    wanted.flatMap((key) =>
      [freeLinesOf(key.id), paidLinesOf(key.id)].map(async (origin) => {
        const lines = await readNewest(store, origin, limit, open);
        return lines.map(({ entry: _, ...line }) => ({ ...line, key: key.alias }));
      }),
    ),
  );
  return found
    .flat()
    .sort((a, b) => b.at - a.at)
    .slice(0, limit);
}

function lineOf(entry: string, fields: Readonly<Record<string, string>>): PlacedLine {
  return {
    entry,
    at: Number(fields.at),
    endpoint: fields.endpoint ?? '',
    status: Number(fields.status),
    duration_ms: Number(fields.duration_ms),
    ip: fields.ip ?? '',
    credits: Number(fields.credits),
  };
}
