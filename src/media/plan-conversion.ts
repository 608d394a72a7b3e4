import type { Args } from '../model/request-parameters.ts';
import { type FormatChoice, isSoundOnly } from './choose-formats.ts';
import { askedRate, type Container, canHold, containers, containersFor, familyOf, isAudioCopy } from './container.ts';
import { endOf, exactLength, longestOf, type SourceStream } from './file-lengths.ts';
import { encodable, filterOf, type HeldPicture, type HeldPictures, isBare, retimed } from './picture-filters.ts';
import type { FetchedFile, Stream } from './probe-file.ts';
import { Failed, type MediaOrder } from './tools.ts';

export interface ConversionPlan {
  readonly container: Container;
  readonly video: boolean;
  readonly audio: boolean;
  /** Arguments of ffmpeg after its inputs; `null` when the one fetched file is delivered unchanged. */
  readonly output: readonly string[] | null;
  /** Second of each fetched file at which the result begins; below zero for a file that begins later than the result. */
  readonly starts: readonly number[];
  /** Seconds that the result must last according to the fetched files, `null` when their formats only estimate. */
  readonly length: number | null;
}

const film = ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '20', '-pix_fmt', 'yuv420p'];
/** WAV and MP3 have no times: without silence in its gaps, sound would be too early behind them. */
const filledGaps = ['aresample=async=1'];
/** Formats that have times of their own; of others ffmpeg counts them by the first sample rate. */
const timedFormats = /^(mov|matroska|mpegts)/;
/** Most channels of which each has a place around its listener that ffmpeg knows, and most that it mixes. */
const [maxPlaced, maxMixed] = [8, 64];
/** Seconds by which sound may be beside its picture unnoticed, and by which two parts of one stream may be apart: farther, their clocks differ. */
const [audibleSeconds, maxApartSeconds] = [0.05, 60];
/** Formats in which a stream may begin later than its film, and seconds by which one that does not may seem to, for pictures that are decoded before it. */
const [placedFormats, misplacedSeconds] = [/^(mov|matroska)/, 0.2];
/** Seconds by which ffmpeg begins before a picture, because it leaves out one that begins an instant earlier. */
const marginSeconds = 0.001;

/**
 * Plans the conversion: stream copy before remux before encoding. A picture is encoded only when mp4 is needed and cannot hold it, as for a
 * file that begins within the source and for a turned picture; when it is so slow that a copy would end too late; and when its pictures have no
 * times.
 */
export function planConversion(
  fetched: readonly FetchedFile[],
  choice: FormatChoice,
  order: MediaOrder,
  held: HeldPictures = { atStart: null, atEnd: null },
): ConversionPlan {
  const video = findStream('video', fetched, choice);
  const starts = startsOf(fetched, choice);
  const sound = within(findStream('audio', fetched, choice), starts, choice);
  const soundOnly = isSoundOnly(order);
  if (soundOnly && sound === null) throw new Failed('no_audio');
  if (!soundOnly && video === null) throw new Failed('no_video');
  // A Matroska would hold it, for no player.
  const isUnknown = (soundOnly ? [sound] : [video, sound]).some((source) => source?.stream.codec === '');
  if (isUnknown) throw new Failed('unsupported_url', 'its codec is not known');
  const hasEnded = (source: SourceStream | null) =>
    source !== null && endOf(source, fetched) <= (starts[source.input] ?? 0);
  // A cut leaves out the next picture, which tells how long the last one is shown: it is while there is sound.
  const isHeld = choice.section && held.atStart !== null && sound !== null && !hasEnded(sound);
  if (choice.start >= longestOf(fetched) || (hasEnded(soundOnly ? sound : video) && !isHeld))
    throw new Failed('start_beyond_end');
  const audio = hasEnded(sound) ? null : sound;
  const made =
    soundOnly && audio !== null
      ? soundPlan(audio, fetched, order)
      : filmPlan(
          video,
          audio,
          order.args,
          isMp4Only(video, fetched, choice),
          filterOf(video, fetched, order.args, choice),
          held.atStart,
        );
  const lead = leadOf(fetched, choice, made.encodesPicture ? held.atStart : null);
  const sources = [video, audio].filter((source) => source !== null);
  const length = exactLength(fetched, sources, choice);
  const isKept =
    !made.encodes && choice.seconds === null && choice.start === 0 && isAlready(fetched, sources, made.container);
  return {
    ...made,
    video: !soundOnly,
    audio: audio !== null,
    starts: starts.map((each) => Math.round((each - lead) * 1e6) / 1e6),
    length,
    output: isKept
      ? null
      : [
          ...(lead > 0 ? ['-ss', lead.toFixed(6)] : []),
          ...output(sources, made, lastsOf(video, length, choice), starts, held),
        ],
  };
}

/** Returns the first stream of a kind in a part that was fetched for it. */
function findStream(
  kind: 'video' | 'audio',
  fetched: readonly FetchedFile[],
  { parts }: FormatChoice,
): SourceStream | null {
  for (const [input, { probe }] of fetched.entries()) {
    const stream = probe[kind];
    if (stream !== null && parts[input]?.[kind]) return { input, stream };
  }
  return null;
}

/** Returns the seconds before the start which ffmpeg decodes and leaves out: of a file in which it finds no second all, else those of a held picture. */
function leadOf(fetched: readonly FetchedFile[], { start }: FormatChoice, held: HeldPicture | null): number {
  return start > 0 && isUnsought(fetched, start)
    ? start
    : Math.min(start, held === null ? 0 : held.seconds + marginSeconds);
}

/** Returns true for a file in which ffmpeg finds no second: it seeks by the picture, and would leave out sound before its first key frame. */
function isUnsought([only, ...others]: readonly FetchedFile[], start: number): boolean {
  if (only === undefined || others.length > 0) return false;
  const { video, begin } = only.probe;
  return (video?.begin ?? 0) - (begin ?? 0) > start || only.edited === true || isBare(only);
}

interface MuxPlan {
  readonly container: Container;
  readonly encoding: readonly string[];
  readonly encodes: boolean;
  readonly encodesPicture?: boolean;
}

function filmPlan(
  video: SourceStream | null,
  audio: SourceStream | null,
  args: Args,
  mp4Only: boolean,
  filter: string | null,
  held: HeldPicture | null,
): MuxPlan {
  const [picture, sound] = [video?.stream.codec ?? null, audio?.stream.codec ?? null];
  const wanted = mp4Only ? [containers.mp4] : containersFor(String(args.video_format ?? 'mp4'));
  if (filter !== null) {
    // A webm holds no H.264.
    const container = wanted.find(({ ext }) => ext !== 'webm') ?? containers.mp4;
    return { container, ...encodedFilm(filter, audio) };
  }
  for (const container of wanted) {
    // Apple's players want this name for HEVC; ffmpeg would take the other one.
    const named = container.ext === 'mp4' && picture === 'hevc' ? ['-tag:v', 'hvc1'] : [];
    if (canHold(container, picture, sound)) return { container, encoding: ['-c', 'copy', ...named], encodes: false };
    if (container.ext !== 'webm' && canHold(container, picture, null)) {
      return { container, encoding: ['-c:v', 'copy', ...named, ...encodedAac(audio, 192)], encodes: true };
    }
  }
  return { container: containers.mp4, ...encodedFilm(encodable(video, held), audio) };
}

function encodedFilm(filter: string, audio: SourceStream | null): Omit<MuxPlan, 'container'> {
  const encoding = [...film, '-vf', filter, ...encodedAac(audio, 192)];
  return { encoding, encodes: true, encodesPicture: true };
}

/** Returns how AAC is encoded: of more than two channels only 5.1 has a number that all players know, and Speex does not place its own. */
function encodedAac(source: SourceStream | null, kilobits: number): string[] {
  const layout = [...mixed(source?.stream), 'aformat=channel_layouts=5.1|stereo|mono'].join();
  return ['-c:a', 'aac', '-b:a', `${kilobits}k`, '-af', layout];
}

/** Returns the filter that mixes more channels than have known places, such as the ten of a WAV, to two: every other one is left. */
function mixed(stream?: Stream): string[] {
  const all = Array.from({ length: Math.min(stream?.channels ?? 0, maxMixed) }, (_, n) => n);
  const side = (rest: number) => all.flatMap((n) => (n % 2 === rest ? `c${n}` : [])).join('+');
  return all.length > maxPlaced ? [`pan=stereo|c0<${side(0)}|c1<${side(1)}`] : [];
}

/** Returns true for what only an mp4 can say: at which frame it begins, and how its picture is turned. */
function isMp4Only(video: SourceStream | null, fetched: readonly FetchedFile[], { start }: FormatChoice): boolean {
  return start > 0 || (video !== null && (video.stream.turned || fetched[video.input]?.hides === true));
}

function soundPlan(source: SourceStream, fetched: readonly FetchedFile[], { args, endpoint }: MediaOrder): MuxPlan {
  const { input, stream } = source;
  const gaps = timedFormats.test(fetched[input]?.probe.format ?? '') ? filledGaps : [];
  const filtered = (filters: readonly string[]) => (filters.length > 0 ? ['-af', filters.join()] : []);
  const container =
    endpoint === 'audio' ? audioContainer(String(args.audio_format ?? 'mp3')) : familyOf(String(args.video_format));
  if (isAudioCopy(args, stream.codec, stream.kilobits))
    return { container, encoding: ['-c:a', 'copy'], encodes: false };
  if (container.ext === 'wav') {
    return { container, encoding: ['-c:a', 'pcm_s16le', '-rf64', 'auto', ...filtered(gaps)], encodes: true };
  }
  if (container.ext === 'mp3') {
    const rate = [32000, 44100, 48000].includes(stream.sampleRate ?? 0) ? [] : ['-ar', '44100'];
    const channels = (stream.channels ?? 2) > 2 ? ['-ac', '2'] : [];
    const kilobits = askedRate(args) ?? 320;
    const encoding = ['-c:a', 'libmp3lame', '-b:a', `${kilobits}k`, ...rate, ...channels];
    return { container, encoding: [...encoding, ...filtered([...mixed(stream), ...gaps])], encodes: true };
  }
  // The only sound for a wanted webm may be one that a webm cannot hold, and an m4a can.
  if (endpoint === 'video' && canHold(containers.m4a, null, stream.codec)) {
    return { container: containers.m4a, encoding: ['-c:a', 'copy'], encodes: false };
  }
  const kilobits = askedRate(args) ?? 256;
  return { container: containers.m4a, encoding: encodedAac(source, kilobits), encodes: true };
}

function audioContainer(format: string): Container {
  const { mp3, m4a, wav } = containers;
  return [mp3, m4a, wav].find(({ ext }) => ext === format) ?? mp3;
}

/** Returns the seconds at which to begin each file: streams of pieces, and files that tell their place, share one clock, and one of them may begin later. */
export function startsOf(fetched: readonly FetchedFile[], { parts, start }: FormatChoice): number[] {
  const begun = fetched[parts.findIndex(({ video }) => video)];
  const beginOf = (file?: FetchedFile) => file?.probe.begin ?? Number.NaN;
  const arePieces = parts.every(({ fragmented }) => fragmented);
  const arePlaced =
    parts.every(({ fragmented }) => !fragmented) && fetched.every(({ probe }) => placedFormats.test(probe.format));
  const first = arePlaced ? fetched.toSorted((one, other) => beginOf(one) - beginOf(other))[0] : begun;
  return fetched.map((each) => {
    const later = beginOf(each) - beginOf(first);
    const same = arePlaced
      ? later > misplacedSeconds && haveOneClock(first, each, later)
      : arePieces && each.probe.format === begun?.probe.format && Math.abs(later) > audibleSeconds;
    return Math.round((same && Math.abs(later) < maxApartSeconds ? start - later : start) * 1000) / 1000;
  });
}

/** Returns true for two files that end nearer to each other where one begins so much later than where both begin at once, as files of two clocks do. */
function haveOneClock(first: FetchedFile | undefined, other: FetchedFile, later: number): boolean {
  const longer = longestOf([other]) - (first ? longestOf([first]) : Number.NaN);
  return Math.abs(longer + later) < Math.abs(longer);
}

/** Returns a stream, `null` for one whose file begins behind the end of the result. */
function within(source: SourceStream | null, starts: readonly number[], { start, seconds }: FormatChoice) {
  const begin = -(starts[source?.input ?? 0] ?? 0);
  return seconds !== null && begin >= seconds - start ? null : source;
}

/** Returns the seconds after which a result ends, `null` for that of its files. Of a film whose edit list leaves its end out, a copy would have it. */
function lastsOf(video: SourceStream | null, length: number | null, { start, seconds }: FormatChoice): number | null {
  if (seconds !== null) return seconds - start;
  const { promised = null, frameRate = null, duration = null } = video?.stream ?? {};
  const leavesOut =
    promised !== null && frameRate !== null && duration !== null && promised / frameRate - duration > 0.5;
  return leavesOut ? length : null;
}

function output(
  sources: readonly SourceStream[],
  made: MuxPlan,
  lasts: number | null,
  starts: readonly number[],
  held: HeldPictures,
): string[] {
  const maps = sources.flatMap(({ input, stream }) => ['-map', `${input}:${stream.index}`]);
  const length = lasts === null ? [] : ['-t', String(lasts)];
  // Copied sound would else begin where the picture's key frame lies.
  const cut = starts.some((each) => each > 0) ? [...length, '-copypriorss:a', '0'] : length;
  const encoding = made.encodesPicture ? made.encoding : [...made.encoding, ...retimed(held)];
  const { muxer } = made.container;
  const front = /^(mp4|ipod)$/.test(muxer) ? ['-movflags', '+faststart'] : [];
  // Players learn of Dolby Vision from a part of the file that ffmpeg calls unofficial.
  const vision = /^(mp4|matroska)$/.test(muxer) ? ['-strict', 'unofficial'] : [];
  const clean = ['-map_metadata', '-1', '-map_chapters', '-1', '-dn', '-sn'];
  // Only by this tag do players show through a picture that is transparent.
  const isClear = made.container.probed === 'matroska' && sources.some(({ stream }) => stream.transparent);
  const clear = isClear ? ['-metadata:s:v', 'alpha_mode=1'] : [];
  return [...maps, ...clean, ...clear, ...encoding, ...cut, ...front, ...vision, '-threads', '2', '-f', muxer];
}

/** Returns true for an mp4 that needs no change: only its index promises the number of packets, which the proof counts. */
function isAlready(fetched: readonly FetchedFile[], sources: readonly SourceStream[], container: Container): boolean {
  const only = fetched.length === 1 && fetched[0]?.plain ? fetched[0].probe : undefined;
  return (
    only !== undefined &&
    container.ext === 'mp4' &&
    /^mov,mp4/.test(only.format) &&
    only.brand !== 'qt' &&
    only.streams.length === sources.length &&
    only.streams.every((stream) => stream.promised !== null)
  );
}
