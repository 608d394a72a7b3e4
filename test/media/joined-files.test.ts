import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { endless, type Flashes, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { decode, look } from '../support/media.ts';

/** The film has ten seconds. */
const twice = [...marks, ...marks.map((mark) => mark + 10)];

describe('A file that is joined of others', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  let twoSizes: Buffer;
  before(async () => {
    source = await openFlashes();
    for (const [name, words] of [
      ['48.ogg', ['-ar', '48000', '-ac', '2', '-c:a', 'libvorbis']],
      ['44.ogg', ['-ar', '44100', '-ac', '2', '-c:a', 'libvorbis']],
      ['mono.ogg', ['-ar', '48000', '-ac', '1', '-c:a', 'libvorbis']],
      ['48.opus', ['-c:a', 'libopus']],
      ['stereo.opus', ['-ac', '2', '-c:a', 'libopus']],
      ['low.ogg', ['-ar', '48000', '-ac', '2', '-c:a', 'libvorbis', '-q:a', '0']],
    ] as const)
      await source.ffmpeg('-i', source.film, '-vn', ...words, name);
    await source.ffmpeg('-i', source.film, '-c:v', 'libtheora', '-c:a', 'libvorbis', 'film.ogv');
    await source.ffmpeg('-i', source.film, '-c', 'copy', 'small.ts');
    await source.ffmpeg('-i', source.film, '-vf', 'scale=96:54', '-c:v', 'libx264', '-c:a', 'copy', 'large.ts');
    twoSizes = Buffer.concat(['small.ts', 'large.ts'].map((part) => readFileSync(source.path(part))));
    for (const [name, parts] of [
      ['rate.ogg', ['48.ogg', '44.ogg']],
      ['channels.ogg', ['48.ogg', 'mono.ogg']],
      ['songs.opus', ['48.opus', 'stereo.opus']],
      ['songs.ogg', ['48.ogg', 'low.ogg']],
      ['codec.ogg', ['48.ogg', '48.opus']],
      ['films.ogv', ['film.ogv', 'film.ogv']],
    ] as const)
      source.write(name, Buffer.concat(parts.map((part) => readFileSync(source.path(part)))));
  });
  after(() => source.stop());

  for (const name of ['rate.ogg', 'channels.ogg', 'songs.opus']) {
    for (const [endpoint, args, from, to] of [
      ['video', { download_type: 'audio', video_format: 'webm' }, 0, 20],
      ['video', { download_type: 'audio', video_format: 'mkv' }, 0, 20],
      ['audio', { audio_format: 'm4a' }, 0, 20],
      ['audio', { audio_format: 'mp3', start: 12, end: 18 }, 12, 18],
    ] as const) {
      it(`D33: of songs, as a radio sends them in Ogg, has each of them at its pace (${name}, ${JSON.stringify(args)})`, async () => {
        const wanted = twice.filter((mark) => mark >= from && mark < to).map((mark) => mark - from);
        const ended = await source.make(endpoint, name, args, async ({ file }) => {
          expect(await decode(file)).to.equal('');
          return (await marksOf(file)).beeps;
        });
        expect(ended).to.be.an('array').with.lengthOf(wanted.length);
        for (const [n, second] of wanted.entries()) expect(ended[n]).to.be.closeTo(second, 0.12);
      });
    }
  }

  // The whole of a radio never arrives.
  for (const name of ['songs.opus', 'songs.ogg', 'songs']) {
    for (const audio_format of ['mp3', 'm4a', 'wav']) {
      it(`D31: of songs that a radio sends without an end is delivered up to a second of a later song (${name}, ${audio_format})`, async () => {
        if (name === 'songs') source.write(name, readFileSync(source.path('songs.ogg')));
        const ended = await source.make(
          'audio',
          `${endless}/${name}`,
          { audio_format, max_duration: 15 },
          async ({ file }) => {
            expect(await decode(file)).to.equal('');
            expect((await look(file)).duration).to.be.closeTo(15, 0.2);
            return (await marksOf(file)).beeps;
          },
        );
        const wanted = twice.filter((mark) => mark < 15);
        expect(ended).to.be.an('array').with.lengthOf(wanted.length);
        for (const [n, second] of wanted.entries()) expect(ended[n]).to.be.closeTo(second, 0.12);
      });
    }
  }

  for (const name of ['two', 'two.mp4', 'two.mkv', 'two.ts']) {
    it(`D62: with pictures of two sizes is no film for one file when only a part of it is fetched, whatever its name (${name})`, async () => {
      source.write(name, twoSizes);
      for (const video_format of ['mp4', 'mkv'])
        expect(await source.make('video', name, { video_format, max_duration: 14 }, () => 'a file')).to.match(
          /^unsupported_url the size/,
        );
      expect(await source.make('video', name, { max_duration: 6 }, () => 'a file')).to.equal('a file');
    });
  }

  it('D33: of pieces of MP3, as HLS has them with a tag in front of each, has none of the tags in the middle of its sound', async () => {
    const bare = ['-segment_format_options', 'write_xing=0:id3v2_version=0'];
    const words = ['-c:a', 'libmp3lame', '-f', 'segment', '-segment_time', '2', ...bare];
    await source.ffmpeg('-i', source.film, '-vn', ...words, '%d.mp3');
    const own = Buffer.from('com.apple.streaming.transportStreamTimestamp\0\0\0\0\0\0\0\0\0');
    const frame = Buffer.concat([Buffer.from('PRIV\0\0\0'), Buffer.of(own.length, 0, 0), own]);
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0'), Buffer.of(frame.length), frame]);
    const names = [0, 1, 2, 3, 4].map((n) => `${n}.mp3`);
    for (const name of names) source.write(name, Buffer.concat([tag, readFileSync(source.path(name))]));
    const lines = names.map((name) => `#EXTINF:2,\n${name}\n`).join('');
    source.write('packed.m3u8', `#EXTM3U\n#EXT-X-TARGETDURATION:3\n${lines}#EXT-X-ENDLIST\n`);
    for (const args of [{ audio_format: 'mp3', audio_quality: 'best' }, { audio_format: 'm4a' }]) {
      const ended = await source.make('audio', 'packed.m3u8', args, async ({ file }) => {
        expect(await decode(file)).to.equal('');
        expect(readFileSync(file).includes('transportStreamTimestamp')).to.equal(false);
        return (await marksOf(file)).beeps;
      });
      expect(ended).to.be.an('array').with.lengthOf(marks.length);
      for (const [n, second] of marks.entries()) expect(ended[n]).to.be.closeTo(second, 0.07);
    }
  });

  it('D62: of an Ogg whose later part has another codec, or a picture, is refused, because only the first part would be read', async () => {
    for (const [endpoint, name] of [
      ['audio', 'codec.ogg'],
      ['video', 'films.ogv'],
      ['audio', 'films.ogv'],
    ] as const)
      expect(await source.make(endpoint, name, {}, () => 'a file'), name).to.match(/^unsupported_url/);
    expect(await source.make('audio', '48.ogg', {}, ({ metadata }) => metadata.ext)).to.equal('mp3');
    expect(await source.make('video', 'film.ogv', {}, () => 'a file')).to.equal('a file');
  });
});
