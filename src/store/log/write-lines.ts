import type { Log } from '../../base/log.ts';
import { recordLimits } from '../../model/record-limits.ts';
import type { CountedLine } from '../../model/usage-history.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Fields of a line, in the order of its values. */
const lineFields = ['at', 'endpoint', 'status', 'duration_ms', 'ip', 'credits'] as const;

/** A line that waited longer for Redis gets an entry of its own time, where the search of its day looks. */
const lateMs = 60_000;
/** Lines of before yesterday may be archived: no entry gets an earlier time than theirs. */
const maxLateMs = 86_400_000;

/**
 * Writes request-log lines of one key and keeps about the `cap` newest, fewer when the account has many keys. The lines follow the
 * named arguments, each as the values of `lineFields`. Answers {'written'}.
 */
const writeLinesScript = script('write-lines', 'needs memory', ['lines', 'lineStreams', 'keyring'], ['cap'])`
local sharing = redis.call('HLEN', keyring) / ${recordLimits.fullLogsOfAccount}
local most = string.format('%d', math.max(1, cap / math.max(1, sharing)))
local function add(call, id, n)
  return call('XADD', lines, 'MAXLEN', '~', most, id, ${lineFields.map((name, n) => `'${name}', ARGV[n + ${n}]`).join(', ')})
end
local function add_late(lateness, n)
  local newest = redis.call('XREVRANGE', lines, '+', '-', 'COUNT', 1)[1]
  local ms = math.max(now - ARGV[2] - math.min(lateness, ${maxLateMs}), newest and newest[1]:match('%d+') or 0)
  local id = add(redis.pcall, string.format('%d-*', ms), n)
  return id.err and add(redis.call, '*', n) or id
end
local written = {}
undos[1] = function() redis.pcall('XDEL', lines, unpack(written)) end
if redis.call('EXISTS', lines) == 0 then redis.call('ZADD', lineStreams, ARGV[4], lines) end
for n = 4, #ARGV, ${lineFields.length} do
  local lateness = now - ARGV[n]
  written[#written + 1] = lateness < ${lateMs} and add(redis.call, '*', n) or add_late(lateness, n)
end
return { 'written' }
`;

export interface LogLine extends CountedLine {
  readonly endpoint: string;
  readonly duration_ms: number;
  readonly ip: string;
}

export interface LoggedKey {
  readonly accountId: string;
  readonly keyId: string;
}

export type RequestLogWriter = ReturnType<typeof openRequestLog>;

const flushMs = 500;

const maxWaitingLines = 20_000;

/** Lines of one batch. A batch that fails is written again as a whole, so it bounds the lines that can be there twice. */
const maxLinesAtOnce = 500;

/**
 * Writes lines every 500 ms, so a SIGKILL loses at most one second of them; at most 20,000 wait while Redis is away. Lines
 * that carry money are written by the script that moves it, and are never lost. Each key keeps `cap` lines, and an account ten
 * times as many.
 */
export function openRequestLog(store: RecordStore, cap: number, log: Log) {
  const waiting: { key: LoggedKey; line: LogLine }[] = [];
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    if (waiting.length === 0) return;
    try {
      // Lines that come meanwhile wait for the next time: calls without a pause would have each line written alone.
      for (let left = waiting.length; left > 0; ) {
        const part = waiting.slice(0, Math.min(left, maxLinesAtOnce));
        await writePart(store, cap, part);
        waiting.splice(0, part.length);
        left -= part.length;
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
    add(key: LoggedKey, line: LogLine): void {
      if (waiting.length < maxWaitingLines) waiting.push({ key, line });
      else dropped++;
      // Written early, because lines that wait longer get promoted and cost the garbage collector more.
      if (waiting.length === maxLinesAtOnce) void flush();
    },
    flush,
    async close(): Promise<void> {
      clearInterval(timer);
      await flush();
      // What came during that, of calls that were cut off.
      await flush();
    },
  };
}

/** Writes all lines of a key in one script: a command per line would cost as much as the call that it logs. */
async function writePart(
  store: RecordStore,
  cap: number,
  part: readonly { readonly key: LoggedKey; readonly line: LogLine }[],
): Promise<void> {
  const writes = [...Map.groupBy(part, ({ key }) => key.keyId)].map(([keyId, lines]) => {
    const { accountId } = lines[0]!.key;
    const moreArgs = lines.flatMap(({ line }) => lineFields.map((name) => String(line[name])));
    return run(store, writeLinesScript, { lines: keys.freeLines(keyId), accountId, cap }, { moreArgs });
  });
  await Promise.all(writes);
}
