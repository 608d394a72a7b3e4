import { type ContentType, extensions } from '../model/content-types.ts';
import type { Args } from '../model/request-parameters.ts';
import { changingSound } from './probe-file.ts';

export interface Container {
  readonly ext: string;
  readonly content_type: string;
  /** Its muxer, and the name that ffprobe gives it. */
  readonly muxer: string;
  readonly probed: string;
  readonly video: readonly string[];
  readonly audio: readonly string[];
}

const anything = ['*'];
/** Codecs for which a Matroska has no name, or tells too little, of those in the formats that are read here: sound of DVD, Blu-ray and broadcasts, old QuickTime and FLV. */
const nameless: ReadonlySet<string> = new Set([
  ...[changingSound, 'pcm_dvd', 'pcm_bluray', 's302m', 'nellymoser', 'flashsv2', 'pcm_s8', 'pcm_f32be', 'pcm_f64be'],
  ...['adpcm_ima_qt', 'mace3', 'mace6', 'sdx2_dpcm', 'gsm', 'qcelp', 'evrc', 'ilbc', 'atrac3p', 'mp4als', 'mp3on4'],
  ...['qtrle', '8bps', 'smc'],
]);
const openAudio = ['opus', 'vorbis'];
const mp4Audio = ['aac', 'mp3', 'alac', 'ac3', 'eac3', 'opus'];

function container(content_type: ContentType, muxer: string, probed: string, video: string[], audio: string[]) {
  return { ext: extensions[content_type], content_type, muxer, probed, video, audio } satisfies Container;
}

export const containers = {
  mp4: container('video/mp4', 'mp4', 'mov', ['h264', 'hevc', 'av1', 'vp9', 'mpeg4'], mp4Audio),
  webm: container('video/webm', 'webm', 'matroska', ['vp9', 'vp8', 'av1'], openAudio),
  mkv: container('video/x-matroska', 'matroska', 'matroska', anything, anything),
  mp3: container('audio/mpeg', 'mp3', 'mp3', [], ['mp3']),
  m4a: container('audio/mp4', 'ipod', 'mov', [], ['aac', 'alac']),
  wav: container('audio/wav', 'wav', 'wav', [], ['pcm_s16le']),
  webmAudio: container('audio/webm', 'webm', 'matroska', [], openAudio),
  mka: container('audio/x-matroska', 'matroska', 'matroska', [], anything),
} as const satisfies Record<string, Container>;

/** Returns the containers for a film, the wanted one first (D32). */
export function containersFor(format: string): readonly Container[] {
  const { mp4, webm, mkv } = containers;
  if (format === 'mkv') return [mkv];
  return format === 'webm' ? [webm, mp4, mkv] : [mp4, webm, mkv];
}

/** Returns true when a container takes these streams without encoding; `null` stands for no stream. */
export function canHold(container: Container, video: string | null, audio: string | null): boolean {
  const takes = (list: readonly string[], codec: string | null) =>
    codec === null || list.includes(codec) || (list === anything && !nameless.has(codec));
  return takes(container.video, video) && takes(container.audio, audio);
}

/** Returns the wanted kilobits a second, `null` for the best. */
export function askedRate(args: Args): number | null {
  const asked = Number.parseInt(String(args.audio_quality ?? 'best'), 10);
  return Number.isNaN(asked) ? null : asked;
}

/** Returns true when sound of this codec and bit rate is copied, not encoded (D63, D64). */
export function isAudioCopy(args: Args, codec: string | null, kilobits: number | null): boolean {
  if (codec === null) return false;
  if (args.video_format !== undefined) return canHold(familyOf(String(args.video_format)), null, codec);
  const asked = askedRate(args);
  if (args.audio_format === 'wav') return false;
  if (args.audio_format === 'm4a') return codec === 'aac' && (asked === null || (kilobits ?? 1e9) <= 1.1 * asked);
  return codec === 'mp3' && asked === null;
}

/** Returns the container for sound alone that belongs to a wanted video format (D64). */
export function familyOf(format: string): Container {
  if (format === 'mkv') return containers.mka;
  return format === 'webm' ? containers.webmAudio : containers.m4a;
}
