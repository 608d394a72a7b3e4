import { keys } from '../keys.ts';
import { ageArgNames, ageValues, beforeAge } from '../lua/age.ts';
import { indexedStream } from '../lua/indexed-stream.ts';
import { readDue } from '../redis/read-due.ts';
import { type RecordStore, run, script } from '../script.ts';

const pageSize = 100;

/**
 * Removes up to 100 request-log lines that have reached an age from the head of a stream. Answers {'trimmed', number of
 * removed lines}; after 100, more may be there.
 */
const trimLinesScript = script(
  'trim-lines',
  'always',
  ['lines', 'lineStreams'],
  ageArgNames,
)`${indexedStream}${beforeAge}
local old = {}
for _, line in ipairs(redis.call('XRANGE', lines, '-', '+', 'COUNT', ${pageSize})) do
  if line[2][1] ~= 'at' or tonumber(line[2][2]) >= before then break end
  old[#old + 1] = line[1]
end
if #old > 0 then redis.call('XDEL', lines, unpack(old)) end
note_oldest(lines, lineStreams)
return { 'trimmed', #old }
`;

/** Removes lines that have reached an age; returns their number. Costs what is due: other streams are not looked at. */
export async function sweepLines(store: RecordStore, ageMs: number): Promise<number> {
  let done = 0;
  for (let kept = 0; ; ) {
    const due = await readDue(store, keys.lineStreams, `(${store.clock.now() - ageMs}`, kept);
    if (due.length === 0) return done;
    for (const lines of due) {
      const removed = await trimLines(store, lines, ageMs);
      if (removed === 0) kept++;
      done += removed;
    }
  }
}

async function trimLines(store: RecordStore, lines: string, ageMs: number): Promise<number> {
  let done = 0;
  for (;;) {
    const [, removed] = await run(store, trimLinesScript, { lines, ...ageValues(store, ageMs) });
    done += Number(removed);
    if (Number(removed) < pageSize) return done;
  }
}
