import { keys } from '../keys.ts';
import { indexedStream } from '../lua/indexed-stream.ts';
import { type RecordStore, readDue, run, script } from '../script.ts';

const pageSize = 100;

/**
 * Removes up to 100 request-log lines that are older than `before` from the head of a stream. Answers {'trimmed', number of
 * removed lines}; after 100, more may be there.
 */
const trimScript = script(
  'trim',
  'always',
  ['lines', 'lineStreams'] as const,
  ['before'] as const,
  /* lua */ `${indexedStream}
local old = {}
for _, line in ipairs(redis.call('XRANGE', lines, '-', '+', 'COUNT', ${pageSize})) do
  if line[2][1] ~= 'at' or tonumber(line[2][2]) >= tonumber(before) then break end
  old[#old + 1] = line[1]
end
if #old > 0 then redis.call('XDEL', lines, unpack(old)) end
note_oldest(lines, lineStreams)
return { 'trimmed', #old }
`,
);

/** Removes lines that are older than `before`; returns their number. Costs what is due: other streams are not looked at. */
export async function sweepLines(store: RecordStore, before: number): Promise<number> {
  let done = 0;
  for (let kept = 0; ; ) {
    const due = await readDue(store, keys.lineStreams, `(${before}`, kept);
    if (due.length === 0) return done;
    for (const lines of due) {
      const removed = await trimLines(store, lines, before);
      if (removed === 0) kept++;
      done += removed;
    }
  }
}

async function trimLines(store: RecordStore, lines: string, before: number): Promise<number> {
  let done = 0;
  for (;;) {
    const [, removed] = await run(store, trimScript, { lines, before });
    done += Number(removed);
    if (Number(removed) < pageSize) return done;
  }
}
