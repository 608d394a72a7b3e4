/**
 * Messages about a direct link that broke off. A body without a length, which "should be" 2^64 - 1 bytes, may have ended there.
 */
const brokenOff = /partial file|should be (?!18446744073709551615\b)\d|: Connection (reset by peer|timed out)/;
/** Messages about packets of a later recording in a direct link, whose times begin anew: ffmpeg squeezes them into no time. */
const backInTime = /\[(?:flv|matroska|webm|mp4|mov|ipod) @.* previous: (\d+), current: (-?\d+)/g;
/** Milliseconds or shorter ticks by which packets go back at least. */
const leastTicks = 500;

/** Returns true for the messages of an ffmpeg that exits with 0, although it did not fetch the beginning of a direct link as it is. */
export function isWrongSection(stderr: string): boolean {
  const leaps = [...stderr.matchAll(backInTime)];
  return brokenOff.test(stderr) || leaps.some(([, before, now]) => Number(before) - Number(now) > leastTicks);
}
