import type { FailureCode } from '../base/errors.ts';
import { membersOf } from '../base/parse-json.ts';
import { ffprobeArguments, type InputFile, mediaEnv, type PacketCount } from './ffmpeg-arguments.ts';
import { asList, asText, positive, readCodec } from './source-page.ts';
import { type ChildEnd, Failed, type MediaTools } from './tools.ts';

export interface Stream {
  readonly index: number;
  /** Number of it in its file: the PID of a transport stream. */
  readonly number: number | null;
  readonly kind: 'video' | 'audio' | 'other';
  /** Empty for one that ffmpeg does not know. */
  readonly codec: string;
  /** Size as it is shown: that of a picture which a phone recorded upright is turned. */
  readonly width: number | null;
  readonly height: number | null;
  /** True for a picture that the player turns before it shows it. */
  readonly turned: boolean;
  /** True for a picture of WebM that has transparent places. */
  readonly transparent?: boolean;
  readonly duration: number | null;
  /** Second at which it begins by its own timestamps. */
  readonly begin: number | null;
  readonly kilobits: number | null;
  /** Pictures in a second, on average and where they follow each other fastest. */
  readonly frameRate: number | null;
  readonly fastestRate: number | null;
  /** Number of pictures that are decoded before one that is shown earlier. */
  readonly reordered: number;
  readonly sampleRate: number | null;
  readonly channels: number | null;
  /** True where ffprobe found no packet that tells its size or sample rate. */
  readonly unseen?: boolean;
  /** Number of packets that the index promises, and of those that were read. */
  readonly promised: number | null;
  readonly counted: number | null;
}

export interface FileProbe {
  readonly format: string;
  /** `qt` for QuickTime, which ffprobe names like mp4; empty when the format has no brands. */
  readonly brand: string;
  /** True for a WebM or Windows Media file whose samples only a key makes readable. */
  readonly encrypted?: boolean;
  readonly duration: number | null;
  /** Second at which it begins by its own timestamps. */
  readonly begin: number | null;
  readonly streams: readonly Stream[];
  /** Streams that a player plays. */
  readonly video: Stream | null;
  readonly audio: Stream | null;
}

export interface Probed {
  readonly probe: FileProbe;
  readonly ended: ChildEnd;
  readonly count: PacketCount;
}

export interface FetchedFile extends Probed, InputFile {
  /** True for a whole mp4 that is like those that ffmpeg makes here (`plain-mp4.ts`). */
  readonly plain?: boolean;
  /** True for an mp4 of which players decode more of the picture than they show. */
  readonly hides?: boolean;
  /** True for an mp4 whose tracks show several parts of their media, which only a decoder leaves out. */
  readonly edited?: boolean;
}

/** Facts of a file with 1,000 tracks, of which ffprobe reads no more, are some 40,000. One that was taken over may write 134 million, which took 2 GB here. */
const maxFactLines = 100_000;
const usualLineLength = 100;

/** Codec of sound whose sample rate, channels or headers change: a file with one header for all of it cannot hold a copy. */
export const changingSound = 'changing';

/** A file may tell a length that differs from that of its tracks by so much, as for a picture that begins late. */
export const maxLengthErrorSeconds = 1;
/** Beginnings of media formats; the bytes are those of Matroska and WebM. */
const signatures = /^(.{4}(ftyp|moov|mdat|free|wide)|ID3|OggS|RIFF|fLaC|FLV)/s;
/** Beginnings of still pictures, of which ffprobe takes AVIF for a film, and animated ones that ffmpeg does not read. */
const stills = /^(RIFF.{4}WEBP|.{4}ftyp(avif|heic|heix|mif1))/s;
/** Tags that ffmpeg gives encrypted tracks of WebM, and encrypted Windows Media. */
const encryptionTags = ['enc_key_id', 'ENC_KEY_ID', 'encryption', 'ASF_Protection_Type'];
const matroska = Buffer.from([0x1a, 0x45, 0xdf, 0xa3]);

/** Returns the failure of a direct link that ffprobe cannot read: damaged, or no media at all (D62). No bytes are a damaged file. */
export function faultOfBytes(beginning: Buffer): FailureCode {
  const text = beginning.toString('latin1');
  const isMedia = beginning.subarray(0, 4).equals(matroska) || (signatures.test(text) && !stills.test(text));
  return isMedia || beginning.length === 0 ? 'file_damaged' : 'unsupported_url';
}

export async function probeFile(
  file: string,
  count: PacketCount,
  tools: MediaTools,
  signal: AbortSignal,
  options: readonly string[] = [],
): Promise<Probed> {
  const words = [...options, ...ffprobeArguments(file, count)];
  const { ended, text } = await askFfprobe(words, maxFactLines, tools, signal);
  if (text === null) throw new Failed('file_damaged', 'ffprobe tells too much');
  return { probe: readProbe(parseProbe(text)), ended, count };
}

/** Runs ffprobe and returns what it wrote, or `null` when that was more than so many lines, of which a long one counts several times. */
export async function askFfprobe(
  words: readonly string[],
  maxLines: number,
  tools: MediaTools,
  signal: AbortSignal,
): Promise<{ readonly ended: ChildEnd; readonly text: string | null }> {
  const lines: string[] = [];
  let left = maxLines;
  const enough = new AbortController();
  const onLine = (line: string) => {
    left -= 1 + Math.floor(line.length / usualLineLength);
    if (left >= 0) lines.push(line);
    else enough.abort();
  };
  const options = {
    ...{ folder: tools.folder, env: mediaEnv(tools.folder), onLine },
    signal: AbortSignal.any([signal, enough.signal]),
  };
  const ended = await tools.run(tools.ffprobe, words, options).ended;
  signal.throwIfAborted();
  return { ended, text: enough.signal.aborted ? null : lines.join('\n') };
}

export function readProbe(json: unknown): FileProbe {
  const fields = membersOf(json);
  const given = asList(fields.streams);
  const format = membersOf(fields.format);
  const begin = readSecond(format.start_time);
  const streams = given.map((stream) => readStream(stream, begin ?? 0, positive(format.duration)));
  const tags = membersOf(format.tags);
  // Players take the stream that the file marks as the default one, of those whose codec they know.
  const isDefault = (stream: Stream) => membersOf(membersOf(given[streams.indexOf(stream)]).disposition).default === 1;
  // A transport stream may list one that never comes.
  const mayLack = asText(format.format_name) === 'mpegts';
  const playedOf = (wanted: Stream['kind']) => {
    const found = streams.filter((stream) => stream.kind === wanted && !(mayLack && stream.unseen));
    const known = found.filter(({ codec }) => codec !== '');
    return known.find(isDefault) ?? known[0] ?? found[0] ?? null;
  };
  return {
    format: asText(format.format_name),
    brand: asText(tags.major_brand).trim(),
    encrypted: isEncrypted(asText(format.format_name), tags, given),
    duration: given.some(isUnending) ? null : lengthOf(asText(format.format_name), streams, positive(format.duration)),
    begin,
    streams,
    video: playedOf('video'),
    audio: playedOf('audio'),
  };
}

/** Returns the length of a file; that of an MP4 which tells another one than its tracks have is that of the tracks. */
function lengthOf(format: string, streams: readonly Stream[], told: number | null): number | null {
  const ends = streams.map(({ begin, duration, promised }) =>
    promised === null || duration === null ? null : (begin ?? 0) + duration,
  );
  const last = Math.max(0, ...ends.map((end) => end ?? 0));
  if (!format.startsWith('mov') || last === 0 || ends.includes(null)) return told;
  return told !== null && Math.abs(told - last) <= maxLengthErrorSeconds ? told : last;
}

function isEncrypted(format: string, tags: Readonly<Record<string, unknown>>, streams: readonly unknown[]): boolean {
  const found = [...(format === 'asf' ? [tags] : []), ...streams.map((each) => membersOf(membersOf(each).tags))];
  return found.some((each) => encryptionTags.some((name) => name in each));
}

function readStream(json: unknown, fileBegin: number, longest: number | null): Stream {
  const fields = membersOf(json);
  const kind = fields.codec_type;
  // Cover art of a sound file does not count as video.
  const cover = membersOf(fields.disposition).attached_pic === 1;
  const bits = positive(fields.bit_rate);
  const degrees = readRotation(fields.side_data_list);
  const [width, height] = [positive(fields.width), positive(fields.height)];
  const isUpright = degrees % 180 !== 0;
  const begin = readSecond(fields.start_time);
  const late = Math.max(0, (begin ?? 0) - fileBegin);
  return {
    index: positive(fields.index) ?? 0,
    number: positive(fields.id),
    kind: cover || (kind !== 'video' && kind !== 'audio') ? 'other' : kind,
    codec: readStreamCodec(fields.codec_name),
    width: isUpright ? height : width,
    height: isUpright ? width : height,
    turned: degrees !== 0,
    transparent: isTransparent(membersOf(fields.tags)),
    duration: isUnending(fields)
      ? null
      : (positive(fields.duration) ?? taggedLength(membersOf(fields.tags), late, longest)),
    begin,
    kilobits: bits === null ? null : bits / 1000,
    frameRate: readRate(fields.avg_frame_rate),
    fastestRate: readRate(fields.r_frame_rate),
    reordered: positive(fields.has_b_frames) ?? 0,
    sampleRate: positive(fields.sample_rate),
    channels: positive(fields.channels),
    unseen: fields.width === 0 || fields.sample_rate === '0',
    promised: positive(fields.nb_frames),
    counted: positive(fields.nb_read_packets),
  };
}

/**
 * Returns the length that a Matroska tells of a stream in a tag, no more than that of the file: a tag may be older than the file. ffmpeg
 * writes the second at which the stream ends, mkvmerge how long it lasts; a copy by ffmpeg keeps the other tags of mkvmerge.
 */
function taggedLength(tags: Readonly<Record<string, unknown>>, late: number, longest: number | null): number | null {
  const [, hours, minutes, seconds] = /^(\d+):(\d\d):(\d\d(?:\.\d+)?)$/.exec(asText(tags.DURATION)) ?? [];
  const told = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) - late;
  const isUnclear = late > maxLengthErrorSeconds && '_STATISTICS_TAGS' in tags;
  return told > 0 && longest !== null && !isUnclear ? Math.min(told, longest) : null;
}

/** Returns true for a stream in pieces whose length is unknown, for which an MP4 has a number of 32 ones (ISO/IEC 14496-12, 8.4.2). */
function isUnending(stream: unknown): boolean {
  return membersOf(stream).duration_ts === 2 ** 32 - 1;
}

/** Returns true for the tag of a picture with transparent places; in a WebM by ffmpeg it has large letters. */
function isTransparent({ alpha_mode, ALPHA_MODE }: Readonly<Record<string, unknown>>): boolean {
  return asText(alpha_mode ?? ALPHA_MODE) === '1';
}

/** Returns the degrees by which a picture is turned before it is shown. */
function readRotation(sideData: unknown): number {
  const found = asList(sideData).map((each) => Math.abs(Number(membersOf(each).rotation)));
  return found.find((degrees) => degrees > 0) ?? 0;
}

/** Returns a second that may be zero or negative, `null` when ffprobe writes none. */
function readSecond(second: unknown): number | null {
  const number = Number(asText(second) || Number.NaN);
  return Number.isFinite(number) ? number : null;
}

/** Returns the number that ffprobe writes as a fraction; `null` for 0/0, which means unknown. */
function readRate(fraction: unknown): number | null {
  const [above, below] = asText(fraction).split('/').map(Number);
  return above && below ? above / below : null;
}

/** Kinds of PCM and AAC differ in what can hold them; all other names are those of the families. */
function readStreamCodec(name: unknown): string {
  const text = asText(name);
  return text.startsWith('pcm_') || text === 'aac_latm' ? text : (readCodec(text) ?? '');
}

/** Parses the JSON that ffprobe wrote; throws `file_damaged` for anything else. */
export function parseProbe(text: string): unknown {
  try {
    return JSON.parse(text || '{}');
  } catch {
    throw new Failed('file_damaged', 'ffprobe answered no JSON');
  }
}
