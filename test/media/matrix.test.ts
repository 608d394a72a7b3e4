import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import type { MediaOrder } from '../../src/media/tools.ts';
import { testsAtOnce } from '../support/at-once.ts';
import { clipSeconds, makeFilms } from '../support/films.ts';
import { decode, look, type MediaFixture, openMediaFixture } from '../support/media.ts';
import { addHeightsPage } from '../support/media-pages.ts';

const full = process.env.ROUNDS !== undefined;
const types = ['audio_video', 'video', 'audio'] as const;
const qualities = ['best', '1080p', '720p', '480p', '360p'] as const;
const formats = ['mp4', 'webm', 'mkv'] as const;
const rates = ['best', '320kbps', '256kbps', '128kbps'] as const;
const sounds = ['mp3', 'm4a', 'wav'] as const;
type Type = (typeof types)[number];

/** Each source with what it has: codecs by container asked for, and the heights of its pictures. */
const sources = {
  heights: { path: '', heights: [360, 480, 720, 1080], codecs: { mp4: ['h264', 'aac'], webm: ['vp9', 'opus'] } },
  'clip.mp4': { path: '/films/clip.mp4', heights: [360], codecs: { mp4: ['h264', 'aac'] } },
  'clip.webm': { path: '/films/clip.webm', heights: [360], codecs: { mp4: ['vp9', 'opus'], webm: ['vp9', 'opus'] } },
  hls: { path: '/films/hls/list.m3u8', heights: [360], codecs: { mp4: ['h264', 'aac'] } },
  'encrypted hls': { path: '/films/locked/list.m3u8', heights: [360], codecs: { mp4: ['h264', 'aac'] } },
  dash: { path: '/films/dash/list.mpd', heights: [360], codecs: { mp4: ['h264', 'aac'] } },
} as const;
type SourceName = keyof typeof sources;

const soundExt: Readonly<Record<string, string>> = { mp4: 'm4a', webm: 'webm', mkv: 'mka' };
const soundCodec: Readonly<Record<string, RegExp>> = { mp3: /^mp3$/, m4a: /^aac$/, wav: /^pcm_s16le$/ };

/** Returns true for a combination of the short suite: every value of every parameter, and every source, at least once. */
function isShort(source: SourceName, type: string, quality: string, format: string): boolean {
  if (source !== 'heights')
    return (
      quality === 'best' &&
      (format === 'mp4' || (source === 'clip.webm' && format === 'webm')) &&
      type === 'audio_video'
    );
  if (type === 'audio_video') return format === 'mp4' || quality === '480p';
  return quality === '720p' || (type === 'video' && quality === 'best' && format === 'webm');
}

describe('Every combination of type, quality and format', () => {
  const it = testsAtOnce(2);
  let fixture: MediaFixture;
  let page: string;
  before(async () => {
    fixture = await openMediaFixture();
    page = addHeightsPage(fixture.source);
  });
  after(() => fixture.stop());
  const address = (source: SourceName) => (source === 'heights' ? page : fixture.source.url + sources[source].path);

  for (const source of Object.keys(sources) as SourceName[]) {
    for (const download_type of types) {
      for (const video_quality of qualities) {
        for (const video_format of formats) {
          if (!full && !isShort(source, download_type, video_quality, video_format)) continue;
          it(`video-download_type video-video_quality video-video_format D32: ${source}: ${download_type} in ${video_quality} as ${video_format}`, () => {
            const args = { query: address(source), download_type, video_quality, video_format };
            return checkFilm(fixture, source, { endpoint: 'video', args });
          });
        }
      }
    }
    for (const audio_quality of rates) {
      for (const audio_format of sounds) {
        if (!full && (source !== 'heights' || (audio_quality !== '128kbps' && audio_format !== 'mp3'))) continue;
        it(`audio-audio_quality audio-audio_format D63: ${source}: sound in ${audio_quality} as ${audio_format}`, () => {
          const args = { query: address(source), download_type: 'audio', audio_quality, audio_format };
          return checkSound(fixture, { endpoint: 'audio', args });
        });
      }
    }
  }

  it('D32: delivers a QuickTime film as an mp4, with the same picture and sound', () => {
    const args = { query: `${fixture.source.url}/films/clip.mov`, download_type: 'audio_video', video_format: 'mp4' };
    return fixture.make({ endpoint: 'video', args }, async ({ produced }) => {
      const seen = await look(produced?.file ?? '');
      expect([produced?.ext, seen.brand]).to.deep.equal(['mp4', 'isom']);
      expect(packetsOf(produced?.file ?? '')).to.equal(packetsOf(join(makeFilms(), 'clip.mov')));
    });
  });

  it('D64: copies sound that a webm cannot hold into an m4a', () => {
    const args = { query: `${fixture.source.url}/films/clip.mp4`, download_type: 'audio', video_format: 'webm' };
    return fixture.make({ endpoint: 'video', args }, ({ produced }) => {
      expect(produced?.ext).to.equal('m4a');
      expect(packetsOf(produced?.file ?? '', 'a')).to.equal(packetsOf(join(makeFilms(), 'clip.mp4'), 'a'));
    });
  });
});

/** Returns a checksum of the coded packets of a file's streams. */
function packetsOf(file: string, streams = 'v,a'): string {
  const maps = streams.split(',').flatMap((kind) => ['-map', `0:${kind}`]);
  return execFileSync('ffmpeg', ['-v', 'error', '-i', file, ...maps, '-c', 'copy', '-f', 'streamhash', '-'], {
    encoding: 'utf8',
  });
}

async function checkFilm(fixture: MediaFixture, source: SourceName, order: MediaOrder): Promise<void> {
  const type = order.args.download_type as Type;
  const format = String(order.args.video_format);
  const codecs: Readonly<Record<string, readonly string[]>> = sources[source].codecs;
  const given = format === 'mkv' ? 'mkv' : codecs[format] ? format : 'mp4';
  const limit = Number.parseInt(String(order.args.video_quality), 10) || Number.POSITIVE_INFINITY;
  const all: readonly number[] = sources[source].heights;
  const height = Math.max(...all.filter((each) => each <= limit));
  await fixture.make(order, async ({ produced, failed }) => {
    expect(failed?.detail ?? null).to.equal(null);
    const seen = await look(produced?.file ?? '');
    const [video, audio] = (codecs[given] ?? [seen.video?.codec, seen.audio?.codec]) as readonly string[];
    if (type === 'audio')
      expect(produced?.ext).to.equal(given === format || format === 'mp4' ? soundExt[format] : 'm4a');
    else {
      expect(produced?.ext).to.equal(given);
      expect([seen.video?.height, seen.video?.codec]).to.deep.equal([height, video]);
      expect([produced?.metadata.width, produced?.metadata.height]).to.deep.equal([seen.video?.width, height]);
    }
    if (type === 'video') expect(seen.audio).to.equal(null);
    else expect(seen.audio?.codec).to.equal(type === 'audio' && format === 'mp4' ? 'aac' : audio);
    expect(seen.streams.length).to.equal(type === 'audio_video' ? 2 : 1);
    expect(seen.duration).to.be.closeTo(clipSeconds, 0.5);
    expect(produced?.metadata.duration).to.be.closeTo(seen.duration ?? 0, 0.01);
    expect(await decode(produced?.file ?? '')).to.equal('');
  });
}

async function checkSound(fixture: MediaFixture, order: MediaOrder): Promise<void> {
  const format = String(order.args.audio_format);
  const asked = Number.parseInt(String(order.args.audio_quality), 10) || null;
  await fixture.make(order, async ({ produced, failed }) => {
    expect(failed?.detail ?? null).to.equal(null);
    const seen = await look(produced?.file ?? '');
    expect(produced?.ext).to.equal(format);
    expect(seen.streams.map(({ kind }) => kind)).to.deep.equal(['audio']);
    expect(seen.audio?.codec).to.match(soundCodec[format] ?? /^$/);
    const kilobits = seen.audio?.kilobits ?? seen.kilobits;
    if (format === 'mp3') expect(kilobits).to.be.closeTo(asked ?? 320, 0.12 * (asked ?? 320));
    if (format === 'm4a' && asked !== null) expect(kilobits).to.be.at.most(1.15 * asked);
    expect(seen.duration).to.be.closeTo(clipSeconds, 0.5);
    expect(await decode(produced?.file ?? '')).to.equal('');
  });
}
