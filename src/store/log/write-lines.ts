import type { Log } from '../../base/log.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';

const fields = ['at', 'endpoint', 'status', 'duration_ms', 'ip', 'credits'] as const;

/**
 * Writes lines of the request log of one key and keeps about as many as `cap`. The lines stand behind the arguments, each
 * as the values of `lineFields`. Answers {'written'}.
 */
const writeLinesScript = script(
  'write-lines',
  'needs memory',
  ['lines'] as const,
  ['cap'] as const,
  /* lua */ `
for n = 3, #ARGV, ${fields.length} do
  redis.call('XADD', lines, 'MAXLEN', '~', cap, '*', ${fields.map((name, n) => `'${name}', ARGV[n + ${n}]`).join(', ')})
end
return { 'written' }
`,
);

/** What a line consists of, in its order. */
const lineFields = fields;

/** One line of the request log. */
export interface LogLine {
  readonly at: number;
  readonly endpoint: string;
  readonly status: number;
  readonly duration_ms: number;
  readonly ip: string;
  readonly credits: number;
}

/** Collects the lines that carry no money and writes them in batches. */
export interface RequestLogWriter {
  add(keyId: string, line: LogLine): void;
  flush(): Promise<void>;
  /** Writes what is left and stops. */
  close(): Promise<void>;
}

const flushMs = 500;

const maxWaitingLines = 20_000;

/** A part that fails is written again as a whole: the smaller it is, the fewer lines can be there twice. */
const maxLinesAtOnce = 500;

/**
 * Lines are written twice a second, so a SIGKILL loses at most one second of them; lines that carry money are written by
 * the script that moves it and are never lost. `cap` lines are kept of each key.
 */
export function openRequestLog(store: RecordStore, cap: number, log: Log): RequestLogWriter {
  const waiting: { keyId: string; line: LogLine }[] = [];
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    if (waiting.length === 0) return;
    try {
      while (waiting.length > 0) {
        const part = waiting.slice(0, maxLinesAtOnce);
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
  const timer = setInterval(flush, flushMs);
  timer.unref();
  return {
    add(keyId, line) {
      if (waiting.length < maxWaitingLines) waiting.push({ keyId, line });
      else dropped++;
      // What waits long is what the collector of garbage has to copy again and again.
      if (waiting.length === maxLinesAtOnce) void flush();
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
  store: RecordStore,
  cap: number,
  part: readonly { readonly keyId: string; readonly line: LogLine }[],
): Promise<void> {
  const byKey = new Map<string, string[]>();
  for (const { keyId, line } of part) {
    const values = byKey.get(keyId) ?? [];
    byKey.set(keyId, values);
    for (const name of lineFields) values.push(String(line[name]));
  }
  const writes = [...byKey].map(([keyId, values]) =>
    run(store, writeLinesScript, { lines: keys.freeLines(keyId) }, { cap }, values),
  );
  await Promise.all(writes);
}
