import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

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
      if (name !== 'both') source.ffmpeg('-t', '6', '-i', source.film, ...maps, ...pieces, `short-${name}.m3u8`);
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

  for (const [shorter, endpoint, args, seconds] of [
    ['sound', 'video', {}, 10],
    ['sound', 'video', { max_duration: 8 }, 8],
    ['sound', 'video', { download_type: 'video' }, 10],
    ['sound', 'audio', {}, 6],
    ['picture', 'video', {}, 10],
    ['picture', 'video', { max_duration: 8 }, 8],
    ['picture', 'video', { download_type: 'video' }, 6],
    ['picture', 'audio', {}, 10],
  ] as const) {
    it(`D33 D92: is delivered as long as what is wanted of it lasts where its ${shorter} ends before the other (${endpoint}, ${JSON.stringify(args)})`, async () => {
      const list = (name: string) => (name === shorter ? `short-${name}.m3u8` : `${name}.m3u8`);
      const sound = group.replace('sound.m3u8', list('sound'));
      const picture = '#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=64x36,CODECS="avc1.42c00c,mp4a.40.2",AUDIO="a"\n';
      source.write(`${shorter}-ends.m3u8`, `#EXTM3U\n${sound}${picture}${list('picture')}\n`);
      const found = await source.make(endpoint, `${shorter}-ends.m3u8`, args, ({ file }) => look(file).duration);
      expect(found).to.be.closeTo(seconds, 0.5);
    });
  }

  it('D33: is not taken for a live one when its list has ended after less than a second', async () => {
    source.ffmpeg('-t', '0.6', '-i', source.film, '-c', 'copy', '-f', 'hls', '-hls_playlist_type', 'vod', 'tiny.m3u8');
    const found = await source.make('video', 'tiny.m3u8', {}, ({ file }) => look(file).duration);
    expect(found).to.be.closeTo(0.6, 0.2);
  });
});
