import type { Args } from '../model/request-parameters.ts';
import { type Container, canHold, containersFor, isAudioCopy } from './container.ts';
import type { SourceFormat, SourcePage } from './source-page.ts';
import { Failed, type MediaOrder } from './tools.ts';

/** One format to fetch, and which of its streams the delivered file gets. */
export interface ChosenFormat {
  readonly id: string;
  readonly name: string;
  readonly video: boolean;
  readonly audio: boolean;
  /** Expected bytes, `null` when the page does not say. */
  readonly bytes: number | null;
  /** True for HLS, DASH and other protocols of many pieces. */
  readonly fragmented: boolean;
}

export interface FormatChoice {
  readonly parts: readonly ChosenFormat[];
  /** Second of the source at which the delivered file begins. */
  readonly start: number;
  /** Second of the source at which the delivered file is cut off, `null` for its end. */
  readonly seconds: number | null;
  /** True when only the beginning of the source is fetched. */
  readonly section: boolean;
  /** Seconds that the delivered file must last according to the source, `null` when the source does not say. */
  readonly expected: number | null;
}

const hour = 3600;
/** A shorter file may hold no frame, and would fail as damaged. */
const minFileSeconds = 0.1;
/** Pictures are coded in blocks: 1088 rows are still 1080p. */
const slack = 8;
const preferredVideo = ['h264', 'av1', 'hevc', 'vp9', 'vp8'];

/** Returns the formats to fetch for an order (D29, D30, D32, D63, D64); throws a `Failed` when none fits. */
export function chooseFormatsFor(page: SourcePage, order: MediaOrder): FormatChoice {
  const { args } = order;
  // ffmpeg reads no number with an exponent, as JavaScript writes those below 0.000001.
  const start = typeof args.start === 'number' ? Math.round(args.start * 1000) / 1000 : 0;
  const end = [args.max_duration, args.end].find((given) => typeof given === 'number') ?? null;
  const seconds = end === null ? null : Math.max(end, start + minFileSeconds);
  if (page.live && seconds === null) throw new Failed('live_unbounded');
  const known = page.live ? seconds : page.duration;
  if (known !== null && start >= known && !mayLastLonger(page, order)) throw new Failed('start_beyond_end');
  const cuts = seconds !== null && (known === null || seconds < known || page.live || page.listed);
  const expected = known === null ? null : Math.min(known, seconds ?? known) - start;
  const section = cuts && (page.live || known === null || seconds < 0.5 * known);
  const formats = chooseFormats(page, order, expected ?? (seconds === null ? null : seconds - start));
  const parts = formats.map((format, n): ChosenFormat => {
    const bytes = expectedBytes(format.format, page.duration, section ? seconds : null);
    const fragmented = !/^https?$/.test(format.format.protocol);
    return { id: format.format.id, name: `part${n}`, video: format.video, audio: format.audio, bytes, fragmented };
  });
  return { parts, start, seconds: cuts ? seconds : null, section, expected };
}

export function isSoundOnly({ endpoint, args }: MediaOrder): boolean {
  return endpoint === 'audio' || args.download_type === 'audio';
}

/** Returns true where the sound that was chosen alone will be encoded. */
export function willEncode({ parts }: FormatChoice, page: SourcePage, order: MediaOrder): boolean {
  const format = page.formats.find(({ id }) => id === parts[0]?.id);
  const kilobits = format?.abr ?? format?.tbr ?? null;
  return isSoundOnly(order) && !isAudioCopy(order.args, format?.acodec ?? null, kilobits);
}

/** Returns true where the length that lists of pieces tell is that of the pictures, and sound alone is wanted, which has a list of its own. */
function mayLastLonger({ listed, formats }: SourcePage, order: MediaOrder): boolean {
  return listed && isSoundOnly(order) && formats.some(({ vcodec, acodec }) => vcodec === 'none' && acodec !== 'none');
}

function chooseFormats(page: SourcePage, order: MediaOrder, length: number | null) {
  const { args } = order;
  const usable = page.formats.filter((format) => format.vcodec !== 'none' || format.acodec !== 'none');
  if (usable.length === 0) throw new Failed('extractor_failed');
  if (isSoundOnly(order)) return [{ format: chooseAudio(usable, args), video: false, audio: true }];
  const limit = sideLimit(String(args.video_quality ?? 'best'), length);
  const silent = args.download_type === 'video';
  const wanted = containersFor(String(args.video_format ?? 'mp4'));
  const sound = silent ? [] : usable.filter((format) => format.acodec !== 'none' && format.vcodec === 'none');
  const video = chooseVideo(usable, limit, wanted, silent ? null : sound);
  if (silent) return [{ format: video, video: true, audio: false }];
  if (video.acodec !== 'none') return [{ format: video, video: true, audio: true }];
  const audio = best(sound, [
    (format) => format.language,
    (format) => Number(isFirstFit(video, format, wanted)),
    (format) => Number(format.acodec === 'aac'),
    (format) => format.abr ?? format.tbr ?? 0,
  ]);
  // Of pictures that a list calls silent, the pieces may have sound.
  const taken = { format: video, video: true, audio: audio === undefined };
  return audio === undefined ? [taken] : [taken, { format: audio, video: false, audio: true }];
}

function sideLimit(quality: string, length: number | null): number {
  const asked = quality === 'best' ? Number.POSITIVE_INFINITY : Number.parseInt(quality, 10);
  return length === null || length > hour ? Math.min(asked, 720) : asked;
}

/** Returns the picture; `sound` are the formats that a silent one is merged with, `null` when no sound is wanted. */
function chooseVideo(
  formats: readonly SourceFormat[],
  limit: number,
  wanted: readonly Container[],
  sound: readonly SourceFormat[] | null,
): SourceFormat {
  // A film that stays silent ranks below one in any language.
  const merged = Math.max(-Number.MAX_VALUE, ...(sound ?? []).map((format) => format.language));
  const pictures = formats.filter((format) => format.vcodec !== 'none');
  const fits = (format: SourceFormat) => (format.side === null ? 1 : format.side <= limit + slack ? 2 : 0);
  const found = best(pictures, [
    (format) => Number(format.preference > -100),
    (format) => Math.min(fits(format), 1),
    // The language in which the film will be heard; with sound in the same file, each dub has a picture of its own.
    (format) => (sound === null ? 0 : format.acodec === 'none' ? merged : format.language),
    fits,
    // Of those above the limit the smallest, of the others the largest.
    (format) => (fits(format) === 0 ? -1 : 1) * (format.side ?? 0),
    (format) => Number(wanted[0] !== undefined && canHold(wanted[0], format.vcodec, null)),
    (format) => preferredVideo.length - (preferredVideo.indexOf(format.vcodec ?? '') + 1 || 9),
    (format) => format.fps ?? 0,
    (format) => Number(sound === null && format.acodec === 'none'),
    (format) => format.tbr ?? 0,
  ]);
  if (found === undefined) throw new Failed('no_video');
  return found;
}

function isFirstFit(video: SourceFormat, audio: SourceFormat, wanted: readonly Container[]): boolean {
  const container = wanted.find((each) => canHold(each, video.vcodec, null));
  return container !== undefined && canHold(container, null, audio.acodec);
}

function chooseAudio(formats: readonly SourceFormat[], args: Args): SourceFormat {
  const sound = formats.filter((format) => format.acodec !== 'none');
  const found = best(sound, [
    (format) => Number(format.preference > -100),
    (format) => format.language,
    (format) => Number(format.vcodec === 'none'),
    (format) => Number(isAudioCopy(args, format.acodec, format.abr ?? (format.vcodec === 'none' ? format.tbr : null))),
    (format) => format.abr ?? (format.vcodec === 'none' ? (format.tbr ?? 0) : 0),
    // The picture is thrown away: a small one costs less, but below 360 rows the sound is poor too.
    (format) => Number((format.side ?? 0) >= 360),
    (format) => -(format.tbr ?? 0),
  ]);
  if (found === undefined) throw new Failed('no_audio');
  return found;
}

/** Returns the format with the greatest marks, compared in turn; of equals the last, because yt-dlp sorts the best last. */
function best(
  formats: readonly SourceFormat[],
  marks: readonly ((format: SourceFormat) => number)[],
): SourceFormat | undefined {
  const compare = (one: SourceFormat, other: SourceFormat) =>
    marks.map((mark) => mark(one) - mark(other)).find((difference) => difference !== 0) ?? 0;
  return formats.toSorted(compare).at(-1);
}

function expectedBytes(format: SourceFormat, duration: number | null, seconds: number | null): number | null {
  const whole = format.bytes ?? (format.tbr !== null && duration !== null ? format.tbr * 125 * duration : null);
  if (seconds === null) return whole;
  if (format.tbr !== null) return format.tbr * 125 * seconds;
  return whole !== null && duration ? (whole * seconds) / duration : null;
}
