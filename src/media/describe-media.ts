import { type Metadata, readMetadata } from '../model/metadata.ts';
import { isDay } from '../model/timestamp.ts';
import { chooseFormatsFor } from './choose-formats.ts';
import { type FileProbe, faultOfBytes, readProbe } from './probe-file.ts';
import type { SourceFormat, SourcePage } from './source-page.ts';
import { Failed, type MediaOrder } from './tools.ts';

/**
 * Returns the metadata of an inspected page; size and kind of file are those that a download would choose. A direct link that is no
 * readable media fails as its download would: facts about nothing are worth no credit.
 */
export function describePage(page: SourcePage, order: MediaOrder): Metadata {
  if (page.unreadable) throw new Failed(faultOfBytes(page.unreadable), 'ffprobe takes the link for no media');
  return describeMedia(page, { query: String(order.args.query) }, bestFormat(page));
}

/** Returns the 19 metadata fields (D26) from the page, its best format, and the file itself, whose facts replace those of its page (D66). */
export function describeMedia(
  page: SourcePage,
  order: { readonly query: string },
  chosen: SourceFormat | null,
  delivered?: { readonly ext: string; readonly probe: FileProbe },
): Metadata {
  const { fields } = page;
  const probe = delivered?.probe ?? (page.probe ? readProbe(page.probe) : null);
  const status = liveStatus(page, typeof probe?.duration === 'number');
  const size = delivered
    ? probe?.video
    : { width: chosen?.width ?? probe?.video?.width, height: chosen?.height ?? probe?.video?.height };
  const ext = chosen?.ext ?? fields.ext;
  const given = {
    ...fields,
    ext: delivered?.ext ?? (ext === 'unknown_video' ? null : ext),
    width: whole(size?.width),
    height: whole(size?.height),
    duration: round(delivered ? probe?.duration : (page.duration ?? probe?.duration)),
    channel: fields.channel ?? fields.uploader,
    channel_url: fields.channel_url ?? fields.uploader_url,
    live_status: status,
    is_live: status === null ? null : status === 'is_live',
    was_live: status === null ? null : status === 'was_live' || status === 'post_live',
    like_count: whole(fields.like_count),
    view_count: whole(fields.view_count),
    upload_date: readDate(fields.upload_date),
    original_url: order.query,
  };
  // An object is always read.
  return readMetadata(given)!;
}

function bestFormat(page: SourcePage) {
  try {
    const { parts } = chooseFormatsFor({ ...page, live: false }, { endpoint: 'video', args: {} });
    return page.formats.find((format) => format.id === parts[0]?.id) ?? null;
  } catch (error) {
    if (error instanceof Failed) return page.formats.at(-1) ?? null;
    throw error;
  }
}

/** Returns `not_live` for media with a length and for plain files, `null` when the page does not say. */
function liveStatus(page: SourcePage, whole: boolean): unknown {
  const { fields } = page;
  if (typeof fields.live_status === 'string') return fields.live_status;
  if (page.live) return 'is_live';
  if (fields.was_live === true) return 'was_live';
  return fields.is_live === false || page.direct || page.duration !== null || whole ? 'not_live' : null;
}

/** Returns YYYYMMDD as a number; `null` for a date that no calendar has. */
function readDate(text: unknown): number | null {
  const [date, ...parts] = (typeof text === 'string' && /^([1-9]\d{3})(\d\d)(\d\d)$/.exec(text)) || [];
  return isDay(parts.join('-')) ? Number(date) : null;
}

function whole(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : null;
}

function round(seconds: number | null | undefined): number | null {
  return seconds === null || seconds === undefined ? null : Math.round(seconds * 1000) / 1000;
}
