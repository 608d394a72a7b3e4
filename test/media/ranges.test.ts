import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';
import { recordLive } from '../support/media.ts';

describe('A source that is asked for ranges of its files', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    const pieces = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod', '-hls_flags', 'single_file'];
    await source.ffmpeg('-i', source.film, '-c', 'copy', ...pieces, '-hls_segment_type', 'fmp4', 'mp4.m3u8');
    await source.ffmpeg('-i', source.film, '-c', 'copy', 'film.ts');
    const negative = ['-c:v', 'libx264', '-preset', 'ultrafast', '-vf', 'negate', '-c:a', 'copy'];
    await source.ffmpeg('-t', '9', '-i', source.film, ...negative, 'other.ts');
    const ranges = ['-f', 'dash', '-use_template', '0', '-single_file', '1', '-seg_duration', '2'];
    await source.ffmpeg('-i', source.film, '-c', 'copy', ...ranges, 'ranges.mpd');
  });
  after(() => source.stop());

  const good = (serve: RequestListener, path: string) => recordLive(serve, path, {}, { see: expectMarks });

  it('D33: is delivered by HLS although it answers for each range with the whole file', () =>
    good(({ url = '' }, answer) => answer.end(readFileSync(source.path(url.slice(1)))), '/mp4.m3u8'));

  it('D33: is delivered by DASH where each range names its file', async () => {
    const text = readFileSync(source.path('ranges.mpd'), 'utf8');
    const file = (part: string) => /<BaseURL>(.*)<\/BaseURL>/.exec(part)?.[1] ?? '';
    const named = text.replace(/<Representation[\s\S]*?<\/Representation>/g, (part) =>
      part.replace(/<BaseURL>.*<\/BaseURL>/, '').replaceAll('<SegmentURL ', `<SegmentURL media="${file(part)}" `),
    );
    expect(named).to.match(/media="\S+" mediaRange="/);
    source.write('named.mpd', named);
    expect(await source.make('video', 'named.mpd', {}, ({ file }) => expectMarks(file))).to.equal(undefined);
    source.write('several.mpd', named.replace(/media="/, '$&no-'));
    expect(await source.make('video', 'several.mpd', {}, () => 'a file')).to.match(/^unsupported_url .*several files/);
  });

  it('D33: is delivered by DASH where each range is the whole of a file of its own', async () => {
    const pieces = ['-f', 'dash', '-seg_duration', '2', '-use_template', '0', '-use_timeline', '0'];
    await source.ffmpeg('-i', source.film, '-c', 'copy', ...pieces, 'pieces.mpd');
    const text = readFileSync(source.path('pieces.mpd'), 'utf8');
    const ranged = text.replace(/<SegmentURL media="([^"]+)"/g, (all, name: string) => {
      const { length } = readFileSync(source.path(name));
      return `${all} mediaRange="0-${length - 1}"`;
    });
    expect(ranged).to.match(/mediaRange="0-/);
    source.write('pieces.mpd', ranged);
    expect(await source.make('video', 'pieces.mpd', {}, ({ file }) => expectMarks(file))).to.equal(undefined);
  });

  it('D65: is recorded without a range that it does not give', async () => {
    const part = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-c:a', 'copy'];
    const pieces = ['-f', 'hls', '-hls_time', '1', '-hls_playlist_type', 'vod'];
    await source.ffmpeg('-i', source.film, ...part, ...pieces, 'live.m3u8');
    let newest = 2;
    let isAsked = false;
    const serve: RequestListener = ({ url = '' }, answer) => {
      const number = Number(/(\d+)\.ts$/.exec(url)?.[1] ?? Number.NaN);
      isAsked = isAsked || number === 8;
      if (number === 8) return void answer.writeHead(404).end();
      if (number >= 0) return void answer.end(readFileSync(source.path(url.slice(1))));
      newest = Math.min(9, newest + 1);
      const listed = [newest - 2, newest - 1, newest].map((n) => {
        const { length } = readFileSync(source.path(`live${n}.ts`));
        return `#EXTINF:0.5,\n#EXT-X-BYTERANGE:${length}@0\nlive${n}.ts\n`;
      });
      const head = `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:${newest - 2}\n`;
      answer.end(`${head}${listed.join('')}${newest === 9 ? '#EXT-X-ENDLIST\n' : ''}`);
    };
    const { seconds } = await recordLive(serve, '/live.m3u8', { max_duration: 20 });
    expect(isAsked).to.equal(true);
    expect(seconds).to.be.greaterThan(0.5);
  });

  it('D33: is asked for the rest alone where servers of one file give it tags of their own', async () => {
    const film = readFileSync(source.path('film.ts'));
    let answered = 0;
    const asked: number[] = [];
    await good(({ headers }, answer) => {
      answered += 1;
      const start = Number(/\d+/.exec(headers.range ?? '')?.[0] ?? 0);
      asked.push(start);
      const range = start > 0 ? { 'content-range': `bytes ${start}-${film.length - 1}/*` } : {};
      const marks = { etag: `"${answered}"`, 'last-modified': 'Mon, 30 Nov 2026 10:00:00 GMT' };
      const length = film.length - start;
      answer.writeHead(start > 0 ? 206 : 200, { ...marks, ...range, 'content-length': length });
      if (asked.some((each) => each > 0)) answer.end(film.subarray(start));
      else answer.write(film.subarray(0, length / 2), () => answer.socket?.end());
    }, '/film.ts');
    expect(asked.slice(asked.findIndex((start) => start > 0))).to.have.lengthOf(1);
  });

  it('D33: is delivered as the file that it has last where its connection breaks off and it has another one then', async () => {
    const [before, after] = ['other.ts', 'film.ts'].map((name) => readFileSync(source.path(name))) as [Buffer, Buffer];
    const middle = 188 * Math.floor(before.length / 376);
    let wasRange = false;
    await good(({ headers }, answer) => {
      const start = Number(/\d+/.exec(headers.range ?? '')?.[0] ?? 0);
      const breaks = start === 0 && !wasRange;
      wasRange = start > 0;
      if (breaks) {
        answer.writeHead(200, { 'content-length': before.length });
        return void answer.write(before.subarray(0, middle), () => answer.socket?.end());
      }
      const range = `bytes ${start}-${after.length - 1}/${after.length}`;
      answer.writeHead(start > 0 ? 206 : 200, { 'content-range': range }).end(after.subarray(start));
    }, '/film.ts');
  });
});
