import { membersOf } from '../base/parse-json.ts';

/** One format of a medium, as its page describes it. A codec is `none` for an absent stream, `null` for an unknown one. */
export interface SourceFormat {
  readonly id: string;
  readonly ext: string;
  readonly vcodec: string | null;
  readonly acodec: string | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly side: number | null;
  readonly fps: number | null;
  readonly tbr: number | null;
  readonly abr: number | null;
  readonly bytes: number | null;
  readonly protocol: string;
  readonly preference: number;
  readonly language: number;
}

export interface SourcePage {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly formats: readonly SourceFormat[];
  readonly duration: number | null;
  /** True when lists of pieces tell the length, not the page: either sound or picture may be shorter or longer. */
  readonly listed: boolean;
  readonly live: boolean;
  readonly direct: boolean;
  /** Answer of ffprobe about the source itself, when the page says too little. */
  readonly probe: unknown;
  /** First bytes of a direct link, which ffprobe takes for no media; `null` for every other page. */
  readonly unreadable: Buffer | null;
}

/** Codec families by the beginnings of the names that pages use. */
const codecs: readonly (readonly [RegExp, string])[] = [
  [/^none$/, 'none'],
  [/^(avc|h\.?264|x264)/, 'h264'],
  [/^(hev|hvc|h\.?265|x265|dvh)/, 'hevc'],
  [/^av0?1/, 'av1'],
  [/^vp0?9/, 'vp9'],
  [/^vp0?8/, 'vp8'],
  [/^(mp4v|mpeg-?4)/, 'mpeg4'],
  [/^theora/, 'theora'],
  [/^mp4a\.(40\.34|69|6b)|^mp3/, 'mp3'],
  [/^(mp4a|aac)/, 'aac'],
  [/^opus/, 'opus'],
  [/^vorbis/, 'vorbis'],
  [/^flac/, 'flac'],
  [/^(ec-3|eac3)/, 'eac3'],
  [/^(ac-3|ac3)/, 'ac3'],
  [/^alac/, 'alac'],
  [/^pcm/, 'pcm'],
];

/** Reads a page as `driver.py` writes it; trusts no type in it. */
export function readPage(json: unknown): SourcePage {
  const fields = membersOf(json);
  const live = fields.is_live === true || fields.live_status === 'is_live';
  const formats = asList(fields.formats).map(readFormat);
  return {
    fields,
    formats,
    live,
    duration: positive(fields.duration),
    listed: fields.listed === true,
    direct: fields.direct === true,
    probe: fields.probe,
    unreadable: typeof fields.unreadable === 'string' ? Buffer.from(fields.unreadable, 'latin1') : null,
  };
}

function readFormat(json: unknown): SourceFormat {
  const fields = membersOf(json);
  const [width, height] = [positive(fields.width), positive(fields.height)];
  return {
    id: asText(fields.format_id),
    ext: asText(fields.ext),
    vcodec: readCodec(fields.vcodec),
    acodec: readCodec(fields.acodec),
    width,
    height,
    side: width === null || height === null ? (height ?? null) : Math.min(width, height),
    fps: positive(fields.fps),
    tbr: positive(fields.tbr),
    abr: positive(fields.abr),
    bytes: positive(fields.filesize) ?? positive(fields.filesize_approx),
    protocol: asText(fields.protocol),
    preference: typeof fields.preference === 'number' ? fields.preference : 0,
    language: typeof fields.language_preference === 'number' ? fields.language_preference : -1,
  };
}

/** Returns the codec family, named as ffprobe names it. */
export function readCodec(value: unknown): string | null {
  if (typeof value !== 'string' || value === '') return null;
  const name = value.toLowerCase();
  return codecs.find(([pattern]) => pattern.test(name))?.[1] ?? name;
}

export function positive(value: unknown): number | null {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : null;
}

/** Returns '' for what is neither text nor number: JSON can hold objects that no conversion takes, and a child may say anything. */
export function asText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

export function asList(json: unknown): readonly unknown[] {
  return Array.isArray(json) ? json : [];
}
