import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';

const variant = '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2"\n';

describe('A list of HLS that names two sources of the same film', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await source.ffmpeg(
      '-i',
      source.film,
      '-c',
      'copy',
      '-f',
      'hls',
      '-hls_time',
      '2',
      '-hls_list_size',
      '0',
      'whole.m3u8',
    );
    source.write('lacks.m3u8', readFileSync(source.path('whole.m3u8'), 'utf8').replace('whole3.ts', 'gone.ts'));
  });
  after(() => source.stop());

  for (const [title, names] of [
    ['the second one does not answer', ['whole', 'gone']],
    ['the first one does not answer', ['gone', 'whole']],
    ['the second one lacks a piece', ['whole', 'lacks']],
  ] as const) {
    it(`D33: is delivered from the other one where ${title}`, async () => {
      const list = `${names.join('-')}.m3u8`;
      source.write(list, `#EXTM3U\n${names.map((name) => `${variant}${name}.m3u8\n`).join('')}`);
      expect(await source.make('video', list, {}, ({ file }) => expectMarks(file))).to.equal(undefined);
    });
  }

  for (const [title, name, wanted] of [
    ['is delivered in the next smaller size where the list of the largest does not exist', 'gone', /^a file/],
    ['D91: is incomplete where the largest size lacks a piece', 'lacks', /^source_incomplete/],
  ] as const) {
    it(title, async () => {
      const larger = variant.replace('300000', '900000').replace('64x36', '640x360');
      const smaller = variant.replace('300000', '100000').replace('64x36', '32x18');
      const list = `#EXTM3U\n${larger}${name}.m3u8\n${smaller}gone.m3u8?2\n${variant}whole.m3u8\n`;
      source.write(`ladder-${name}.m3u8`, list);
      const ended = await source.make('video', `ladder-${name}.m3u8`, {}, async ({ file, metadata }) => {
        await expectMarks(file);
        return `a file of ${metadata.width}`;
      });
      expect(ended).to.match(wanted);
    });
  }

  it('D91: is incomplete where its sound lacks a piece, and does not take the commentary in the same language', async () => {
    const cut = ['-f', 'hls', '-hls_time', '2', '-hls_list_size', '0'];
    for (const kind of ['v', 'a'])
      await source.ffmpeg('-i', source.film, '-map', `0:${kind}`, '-c', 'copy', ...cut, `${kind}.m3u8`);
    source.write('a-lacks.m3u8', readFileSync(source.path('a.m3u8'), 'utf8').replace('a3.ts', 'gone.ts'));
    const sound = (name: string, uri: string, shown: string) =>
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",LANGUAGE="en",NAME="${name}",DEFAULT=${shown},URI="${uri}"\n`;
    const sounds = sound('English', 'a-lacks.m3u8', 'YES') + sound('Commentary', 'a.m3u8', 'NO');
    source.write('sounds.m3u8', `#EXTM3U\n${sounds}${variant.replace('\n', ',AUDIO="a"\n')}v.m3u8\n`);
    expect(await source.make('video', 'sounds.m3u8', {}, () => 'a file')).to.match(/^source_incomplete/);
  });

  it('D91: is incomplete where both lack a piece', async () => {
    source.write('both.m3u8', `#EXTM3U\n${variant}lacks.m3u8\n${variant}lacks.m3u8?2\n`);
    expect(await source.make('video', 'both.m3u8', {}, () => 'a file')).to.match(/^source_incomplete/);
  });
});

describe('A link to a list of HLS', () => {
  it('D62: is unsupported where its server answers with a page', async () => {
    const source = await openFlashes();
    source.write('page.m3u8', '<!DOCTYPE html><title>Expired</title>');
    const ended = await source.make('video', 'page.m3u8', {}, () => 'a file');
    await source.stop();
    expect(ended).to.match(/^unsupported_url/);
  });
});
