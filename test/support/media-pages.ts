import { clipSeconds, heights, hourSeconds } from './films.ts';
import type { Source } from './source-server.ts';

const widths: Readonly<Record<number, number>> = { 360: 640, 480: 854, 720: 1280, 1080: 1920 };

/** Words of a page that has all of them. */
export const words = {
  title: 'A film of several heights',
  description: 'One line\nand another – café',
  channel: 'The channel',
  channel_url: 'http://127.0.0.1/channel',
  thumbnail: 'http://127.0.0.1/thumb.jpg',
  view_count: 12345,
  like_count: 67.0,
  upload_date: '20260102',
  is_live: false,
};

/** A page with pictures of four heights in two codecs, and sound of its own in two. */
export function addHeightsPage(source: Source, name = 'heights'): string {
  return source.addPage(name, {
    info: {
      ...words,
      duration: clipSeconds,
      formats: [...soundFormats(source), ...heights.flatMap((height) => pictureFormats(source, height))],
    },
  });
}

/** A page with a film of more than an hour in 720 and 1080 lines. */
export function addHourPage(source: Source): string {
  const formats = [720, 1080].map((height) => ({
    ...pictureFormat(source, `hour${height}.mp4`, height),
    tbr: height / 50,
  }));
  return source.addPage('hour', { info: { duration: hourSeconds, formats } });
}

/** A page with a film that stands upright, in 360 and 720 columns. */
export function addPortraitPage(source: Source): string {
  const formats = [360, 720].map((width) => ({ ...pictureFormat(source, `p${width}.mp4`, (width * 16) / 9), width }));
  return source.addPage('portrait', { info: { duration: clipSeconds, formats } });
}

export function soundFormats(source: Source) {
  const both = { vcodec: 'none' };
  return [
    {
      format_id: 'a-m4a',
      url: `${source.url}/films/a.m4a`,
      ext: 'm4a',
      acodec: 'mp4a.40.2',
      abr: 128,
      tbr: 128,
      ...both,
    },
    { format_id: 'a-opus', url: `${source.url}/films/a.webm`, ext: 'webm', acodec: 'opus', abr: 96, tbr: 96, ...both },
  ];
}

function pictureFormats(source: Source, height: number) {
  const vp9 = { ...pictureFormat(source, `v${height}.webm`, height), vcodec: 'vp9', ext: 'webm', tbr: height * 1.1 };
  return [pictureFormat(source, `v${height}.mp4`, height), vp9];
}

function pictureFormat(source: Source, file: string, height: number) {
  const size = { height, width: widths[height], fps: 10, tbr: height };
  return {
    format_id: file,
    url: `${source.url}/films/${file}`,
    ext: 'mp4',
    vcodec: 'avc1.42c028',
    acodec: 'none',
    ...size,
  };
}
