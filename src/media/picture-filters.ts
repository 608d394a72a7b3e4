import type { Args } from '../model/request-parameters.ts';
import type { FormatChoice } from './choose-formats.ts';
import { lengthTolerance, longestOf, type SourceStream } from './file-lengths.ts';
import type { FetchedFile, FileProbe } from './probe-file.ts';

/** Picture whose time a copy changes: that which is shown at the start of a part, or at its end, as a slide is. */
export interface HeldPicture {
  /** Byte of its file at which it lies. */
  readonly position: number;
  /** Seconds since when it has been shown at the start; zero for one that begins behind it. */
  readonly seconds: number;
  /** Share of the time that its file tells for which the part shows it. */
  readonly share: number;
  /** Pictures that are shown after it and decoded before, with the share of their time at which the part ends. */
  readonly early: readonly Pick<HeldPicture, 'position' | 'share'>[];
}

export interface HeldPictures {
  readonly atStart: HeldPicture | null;
  readonly atEnd: HeldPicture | null;
}

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
 * interlaced; the beginning of a file does not tell whether its later pictures are. One that is held at the start is repeated, or ffmpeg would
 * begin with the next one.
 */
export function encodable(video: SourceStream | null, held: HeldPicture | null = null): string {
  const { width, height } = video?.stream ?? {};
  const repeated = held !== null ? `fps=${filmRate(video)},` : '';
  return `${repeated}${Math.min(width ?? 0, height ?? 0) < minJoinedLines ? '' : 'yadif=deint=interlaced,'}${evenSize}`;
}

/** Returns the filter with which to encode a picture that cannot be copied into any container, else `null`. */
export function filterOf(
  video: SourceStream | null,
  fetched: readonly FetchedFile[],
  args: Args,
  choice: FormatChoice,
): string | null {
  const slow = slowRate(video, args, choice, longestOf(fetched));
  if (slow !== null) return `fps=${slow},${encodable(video)}`;
  if (video !== null && fetched[video.input]?.edited) return encodable(video);
  const untimed = fetched.find(({ probe }) => isUntimed(probe));
  if (video === null || untimed === undefined) return null;
  // Of AVI, the decoder gives each picture the time at which it was decoded.
  const late = isBare(untimed) ? 0 : video.stream.reordered / (video.stream.frameRate ?? 25);
  return `setpts=PTS-${late.toFixed(3)}/TB,${encodable(video)}`;
}

/**
 * Returns the arguments that copy held pictures with other times. Readers of ffmpeg leave out a picture that begins before the start, and show all
 * later ones too early, by the rest of it; and a picture that is shown beyond the end would make the file as long. Those that come along, because
 * they are decoded before the end, are shown at the end for an instant: left out, others that are made of them would break. A place is the same
 * in every unit of time, which for this filter differs by version.
 */
export function retimed({ atStart, atEnd }: HeldPictures): string[] {
  const all = [atStart, atEnd].filter((each) => each !== null);
  if (all.length === 0) return [];
  const ifAt = (position: number, then: string, otherwise: string) => `if(eq(POS,${position}),${then},${otherwise})`;
  const early = atEnd?.early ?? [];
  const ended = early.reduce((rest, { position, share }) => ifAt(position, `PTS*${share.toFixed(9)}`, rest), 'PTS');
  const pts = atStart === null ? ended : ifAt(atStart.position, '0', ended);
  const instant = early.reduce((rest, { position }) => ifAt(position, '1', rest), 'DURATION');
  const duration = all.reduce(
    (rest, { position, share }) => ifAt(position, `DURATION*${share.toFixed(6)}`, rest),
    instant,
  );
  return ['-bsf:v', `setts=pts='${pts}':duration='${duration}'`];
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
