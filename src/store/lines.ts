import type { Log } from '../base/log.ts';
import { listKeys } from './keyring.ts';
import { keys } from './keys.ts';
import { pairs, type Store } from './script.ts';

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
  const waiting: { key: string; command: string[] }[] = [];
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    if (waiting.length === 0) return;
    try {
      while (waiting.length > 0) {
        const { length } = await store.connection.batch(waiting.slice(0, mostAtOnce));
        waiting.splice(0, length);
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
    add(keyId, { at, ...line }) {
      if (waiting.length >= mostWaiting) {
        dropped++;
        return;
      }
      const key = keys.freeLines(keyId);
      const fields = Object.entries(line).flatMap(([name, value]) => [name, String(value)]);
      waiting.push({ key, command: ['XADD', key, 'MAXLEN', '~', String(cap), '*', 'at', String(at), ...fields] });
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** Newest lines first, of all keys of an account or of one alias. */
export async function readLines(
  store: Store,
  account: string,
  limit: number,
  alias?: string,
): Promise<(Line & { key: string })[]> {
  const wanted = (await listKeys(store, account)).filter((key) => alias === undefined || key.alias === alias);
  const streams = wanted.flatMap((key) => [
    { alias: key.alias, stream: keys.freeLines(key.id) },
    { alias: key.alias, stream: keys.paidLines(key.id) },
  ]);
  const found = await store.connection.batch(
    streams.map(({ stream }) => ({ key: stream, command: ['XREVRANGE', stream, '+', '-', 'COUNT', String(limit)] })),
  );
  return found
    .flatMap((page, n) =>
      (page as [string, string[]][]).map(([, flat]) => ({ ...lineOf(pairs(flat)), key: streams[n]?.alias ?? '' })),
    )
    .sort((a, b) => b.at - a.at)
    .slice(0, limit);
}

function lineOf(fields: Readonly<Record<string, string>>): Line {
  return {
    at: Number(fields.at),
    endpoint: fields.endpoint ?? '',
    status: Number(fields.status),
    duration_ms: Number(fields.duration_ms),
    ip: fields.ip ?? '',
    credits: Number(fields.credits),
  };
}
