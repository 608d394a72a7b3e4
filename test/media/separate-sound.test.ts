import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';

const group = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",DEFAULT=YES,URI="sound.m3u8"\n';

describe('A stream whose list tells little of its sound', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    for (const [name, ...maps] of [
      ['picture', '-map', '0:v'],
      ['sound', '-map', '0:a'],
      ['both', '-map', '0:v', '-map', '0:a'],
    ] as const) {
      const pieces = ['-c', 'copy', '-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];
      source.ffmpeg('-i', source.film, ...maps, ...pieces, `${name}.m3u8`);
    }
  });
  after(() => source.stop());

  for (const [title, sounds, words, list] of [
    ['names no codecs and sound beside its pictures', group, ',AUDIO="a"', 'picture'],
    ['names no codecs and sound that its pictures have too', group, ',AUDIO="a"', 'both'],
    ['names the codec of its pictures alone, although they have sound', '', ',CODECS="avc1.42c00c"', 'both'],
  ] as const) {
    it(`D33: is delivered with sound where that ${title}`, async () => {
      const name = `${title.replaceAll(/\W+/g, '-')}.m3u8`;
      const picture = `#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36${words}\n${list}.m3u8\n`;
      source.write(name, `#EXTM3U\n${sounds}${picture}`);
      expect(await source.make('video', name, {}, ({ file }) => expectMarks(file))).to.equal(undefined);
    });
  }
});
