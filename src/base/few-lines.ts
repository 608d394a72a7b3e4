import type { Log } from './log.ts';

const windowMs = 60_000;
const maxLines = 10;

/**
 * Returns one level of a log that writes each sentence at most ten times a minute: what fails for each of thousands of jobs would push
 * the lines from before the fault out of the kept log. A minute with more ends with one more line, whose `left_out` counts them. The log
 * returns true for a line that it has written.
 */
export function fewLines(write: Log['warn']): (...line: Parameters<Log['warn']>) => boolean {
  const counts = new Map<string, number>();
  const endMinute = (sentence: string) => {
    const leftOut = (counts.get(sentence) ?? 0) - maxLines;
    counts.delete(sentence);
    if (leftOut > 0) write(sentence, { left_out: leftOut });
  };
  return (sentence, fields) => {
    const count = (counts.get(sentence) ?? 0) + 1;
    counts.set(sentence, count);
    if (count === 1) setTimeout(endMinute, windowMs, sentence).unref();
    if (count > maxLines) return false;
    write(sentence, fields);
    return true;
  };
}
