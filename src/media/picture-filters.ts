import type { Args } from '../model/request-parameters.ts';
import type { FormatChoice } from './choose-formats.ts';
import { lengthTolerance, longestOf, type SourceStream } from './file-lengths.ts';
import type { FetchedFile, FileProbe } from './probe-file.ts';

/** H.264 has no odd sizes. */
const evenSize = 'crop=trunc(iw/2)*2:trunc(ih/2)*2';
/** Columns and lines of a picture below which ffmpeg does not join its lines. */
const minJoinedLines = 3;
/** Pictures in a second of a slow film that is encoded: with fewer, it would not end as exactly as a part must. */
const slowRates = { min: 2, max: 30 };
/** Seconds by which a part may be longer than `end` says. */
const endToleranceSeconds = 0.5;

/**
 * Returns the filters of every picture that is encoded. Players would show one with the lines of two moments, because it does not call itself
 * interlaced; the beginning of a file does not tell whether its later pictures are.
 */
export function encodable(video: SourceStream | null): string {
  const { width, height } = video?.stream ?? {};
  return Math.min(width ?? 0, height ?? 0) < minJoinedLines ? evenSize : `yadif=deint=interlaced,${evenSize}`;
}

/** Returns the filter with which to encode a picture that cannot be copied into any container, else `null`. */
export function filterOf(
  video: SourceStream | null,
  fetched: readonly FetchedFile[],
  args: Args,
  choice: FormatChoice,
  heldSeconds: number,
): string | null {
  const slow = heldSeconds > 0 ? filmRate(video) : slowRate(video, args, choice, longestOf(fetched));
  if (slow !== null) return `fps=${slow},${encodable(video)}`;
  const untimed = fetched.find(({ probe }) => isUntimed(probe));
  if (video === null || untimed === undefined) return null;
  // Of AVI, the decoder gives each picture the time at which it was decoded.
  const late = isBare(untimed) ? 0 : video.stream.reordered / (video.stream.frameRate ?? 25);
  return `setpts=PTS-${late.toFixed(3)}/TB,${encodable(video)}`;
}

export function isBare({ probe }: FetchedFile): boolean {
  return probe.format !== 'avi' && isUntimed(probe);
}

/** Returns true for H.264 in AVI, and for a bare stream, whose pictures have no time at which they are shown: only a decoder knows their order. */
export function isUntimed({ format, video }: FileProbe): boolean {
  return video?.codec === (format === 'avi' ? 'h264' : format) && video.reordered > 0;
}

/**
 * Returns the rate with which to encode a picture whose copy would end too late, else `null`. ffmpeg cuts a copy in the order of decoding, so
 * that pictures come along which are shown later, and the last one stays for its time.
 */
function slowRate(video: SourceStream | null, args: Args, { seconds }: FormatChoice, longest: number): number | null {
  const { frameRate = null, reordered = 0 } = video?.stream ?? {};
  if (frameRate === null || seconds === null || seconds >= longest) return null;
  const most = args.end === undefined ? lengthTolerance(seconds) : endToleranceSeconds;
  return (reordered + 1) / frameRate <= most ? null : filmRate(video);
}

function filmRate(video: SourceStream | null): number {
  const { frameRate = null, fastestRate = null } = video?.stream ?? {};
  return Math.min(slowRates.max, Math.max(slowRates.min, fastestRate ?? frameRate ?? 0));
}
