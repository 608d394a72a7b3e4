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
