/**
 * Messages about a direct link that broke off. A body without a length, which "should be" 2^64 - 1 bytes, may have ended there.
 */
const brokenOff = /partial file|should be (?!18446744073709551615\b)\d|: Connection (reset by peer|timed out)/;
/**
 * Messages about packets of a later recording in a direct link, whose times begin anew: ffmpeg squeezes them into no time. They are numbered in
 * milliseconds, and in an MP4 by the samples of its sound: its pieces may overlap by some of these, also in a stream without an end.
 */
const backInTime = [
  { message: /\[(?:flv|matroska|webm) @.* previous: (\d+), current: (-?\d+)/g, leastTicks: 500 },
  { message: /\[(?:mp4|mov|ipod) @.* previous: (\d+), current: (-?\d+)/g, leastTicks: 48_000 },
];

/** Returns true for the messages of an ffmpeg that exits with 0, although it did not fetch the beginning of a direct link as it is. */
export function isWrongSection(stderr: string): boolean {
  const hasLeap = backInTime.some(({ message, leastTicks }) =>
    [...stderr.matchAll(message)].some(([, before, now]) => Number(before) - Number(now) > leastTicks),
  );
  return hasLeap || brokenOff.test(stderr);
}
