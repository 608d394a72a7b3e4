import type { FormatChoice } from './choose-formats.ts';
import { lengthTolerance, longestOf } from './file-lengths.ts';
import type { FetchedFile } from './probe-file.ts';
import type { SourcePage } from './source-page.ts';

/**
 * Messages about a direct link that broke off. A body without a length, which "should be" 2^64 - 1 bytes, may have ended there.
 */
const brokenOff = /partial file|should be (?!18446744073709551615\b)\d|: Connection (reset by peer|timed out)/;
/**
 * Message about a packet of a later recording in a direct link, whose times begin anew: ffmpeg squeezes them into no time. From version 6.1 on it
 * names a stream, and no format.
 */
const backInTime = /\[(?:flv|matroska|webm|mp4|mov|ipod|[av]ost#\S+) @.* previous: (\d+), current: (-?\d+)/g;
/**
 * Ticks of a leap back by the format of the part: they are milliseconds, and in an MP4 samples of its sound, of whose pieces some may overlap, also
 * in a stream without an end.
 */
const minTicks: readonly (readonly [RegExp, number])[] = [
  [/^(flv|matroska)/, 500],
  [/^mov/, 48_000],
];

/** Messages about a direct link that ends inside of a packet, or before its first frame says. */
const cutOff = /File ended prematurely|Packet corrupt|filesize and duration do not match/;
/** Formats that have no such message, or of which more may lie behind the end. */
const silent = /^(flv|asf|wav|aiff|ogg|mpegts)$/;

/**
 * Returns true for a part of a direct link that is shorter than wanted, although more lies behind its end, or should lie there: only the whole
 * tells. A link without a length, such as a radio, ends where it ends.
 */
export function endsTooEarly(
  stderr: string,
  { direct, formats }: SourcePage,
  { section, seconds }: FormatChoice,
  fetched: readonly FetchedFile[],
): boolean {
  const isShort = section && seconds !== null && longestOf(fetched) < seconds - lengthTolerance(seconds);
  if (!direct || formats.every(({ bytes }) => bytes === null)) return false;
  // ffmpeg was told to keep the gaps of a part, as in `streams.py`, and would end it early where the clock leaps.
  if (section && fetched.some(({ clock }) => clock === 'leaps')) return true;
  if (!isShort) return false;
  return cutOff.test(stderr) || fetched.some(({ probe }) => silent.test(probe.format));
}

/** Returns true for the messages of an ffmpeg that exits with 0, although a direct link broke off. */
export function isBrokenOff(stderr: string): boolean {
  return brokenOff.test(stderr);
}

/** Returns true for the messages of an ffmpeg that exits with 0, although it did not fetch the beginning of a direct link of a format as it is. */
export function isSqueezed(stderr: string, format: string): boolean {
  const least = minTicks.find(([pattern]) => pattern.test(format))?.[1] ?? Number.POSITIVE_INFINITY;
  return [...stderr.matchAll(backInTime)].some(([, before, now]) => Number(before) - Number(now) > least);
}
