import type { FormatChoice } from './choose-formats.ts';
import type { FetchedFile, FileProbe, Stream } from './probe-file.ts';
import type { SourcePage } from './source-page.ts';

/** A wanted stream, and the number of the fetched file that has it. */
export interface SourceStream {
  readonly input: number;
  readonly stream: Stream;
}

/** Formats whose index knows their length; others guess it from the bit rate. */
const exactFormats = /^(mov|matroska|wav|flac)/;
/** Formats of which a file that was cut off is known: by what ffmpeg says of its index, or by its last timestamps. */
const wholeFormats = /^(mov|matroska|mpegts)/;

/** Returns the seconds that a length may differ from the source's own, or from `max_duration` (D92). */
export function lengthTolerance(seconds: number): number {
  return Math.max(2, 0.05 * seconds);
}

/** Returns the seconds that the longest file lasts, without end when one does not tell. */
export function longestOf(fetched: readonly FetchedFile[]): number {
  return Math.max(...fetched.map(({ probe }) => lengthOf(probe) ?? Number.POSITIVE_INFINITY));
}

/** Returns the length of a file, or of its stream. Of one in fragments, ffprobe may tell the second at which it ends by its own clock. */
function lengthOf({ format, begin, duration }: FileProbe, ofStream: number | null = null): number | null {
  const told = ofStream ?? duration;
  return told === null || !exactFormats.test(format) ? told : Math.max(0, told - Math.max(0, begin ?? 0));
}

/** Returns the second at which a stream ends, without end when its file does not tell. */
export function endOf({ input, stream }: SourceStream, fetched: readonly FetchedFile[]): number {
  const probe = fetched[input]?.probe;
  const known = probe !== undefined && stream.duration !== null && exactFormats.test(probe.format);
  // Before its file begins there is no end: such a length is by another clock.
  const length = (known && lengthOf(probe, stream.duration)) || Number.POSITIVE_INFINITY;
  return length + Math.max(0, (stream.begin ?? 0) - (probe?.begin ?? 0));
}

/**
 * Returns true when one kind of stream is wanted of a file that holds both, and the file lasts as long as its source states: the source is whole,
 * although that kind may end before.
 */
function mayEndEarlier(
  wanted: { readonly video: boolean; readonly audio: boolean },
  fetched: readonly FetchedFile[],
  choice: FormatChoice,
): boolean {
  const [only, ...others] = fetched.map(({ probe }) => probe);
  const { start, expected } = choice;
  const isPart = wanted.video !== wanted.audio && others.length === 0 && only?.video != null && only.audio !== null;
  const length = isPart && wholeFormats.test(only.format) ? lengthOf(only) : null;
  return length !== null && expected !== null && length >= start + expected - lengthTolerance(expected);
}

/**
 * Returns the seconds that the delivered file must last by its source, `null` when that does not say. A length that was not told by the page is
 * that of the pictures, or of the longest format: the lists of the parts tell their own. A part without a list may be cut off unseen.
 */
export function statedLength(
  wanted: { readonly video: boolean; readonly audio: boolean },
  fetched: readonly FetchedFile[],
  { page, choice }: { readonly page: SourcePage; readonly choice: FormatChoice },
  listed: number | null,
): number | null {
  if (mayEndEarlier(wanted, fetched, choice)) return null;
  if (!page.listed || listed === null) return choice.expected;
  return Math.min(listed, choice.seconds ?? listed) - choice.start;
}

/** Returns the seconds that a conversion of these streams must last, `null` when their formats only estimate. */
export function exactLength(
  fetched: readonly FetchedFile[],
  sources: readonly SourceStream[],
  { start, seconds }: FormatChoice,
): number | null {
  const known = sources.map(({ input, stream }) => {
    const probe = fetched[input]?.probe;
    const isWanted = (each: Stream) => sources.some((source) => source.input === input && source.stream === each);
    // The length of a file may be that of another stream, such as subtitles.
    const isOwn = stream.duration !== null || probe?.streams.every(isWanted);
    return probe !== undefined && isOwn && exactFormats.test(probe.format) ? lengthOf(probe, stream.duration) : null;
  });
  const longest = Math.max(0, ...known.map((each) => each ?? 0));
  if (longest === 0 || known.includes(null)) return null;
  return Math.min(longest, seconds ?? longest) - start;
}
