import type { Log } from './log.ts';

const windowMs = 60_000;
const maxLines = 10;

/**
 * Returns one level of a log that writes at most ten lines a minute: what fails for each of thousands of jobs would push the lines from
 * before the fault out of the kept log. The next line that is written has `left_out`, the number of those that were not.
 */
export function fewLines(write: Log['warn'], clock = () => performance.now()): Log['warn'] {
  let [lines, leftOut, endsAt] = [0, 0, 0];
  return (sentence, fields) => {
    const now = clock();
    if (now >= endsAt) [lines, endsAt] = [0, now + windowMs];
    if (lines >= maxLines) {
      leftOut += 1;
      return;
    }
    lines += 1;
    write(sentence, leftOut === 0 ? fields : { ...fields, left_out: leftOut });
    leftOut = 0;
  };
}
