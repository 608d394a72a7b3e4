import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, marksOf, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

describe('A film whose file tells a length of its own', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-movflags', '+faststart', 'front.mp4');
    source.write('words.srt', '1\n00:00:01,000 --> 00:00:30,000\nWords\n');
    const words = ['-i', source.film, '-i', 'words.srt', '-map', '0', '-map', '1'];
    await source.ffmpeg(...words, '-c', 'copy', '-c:s', 'srt', 'words.mkv');
    await source.ffmpeg(...words, '-c:v', 'libvpx', '-c:a', 'libopus', '-c:s', 'webvtt', 'words.webm');
    const late = ['-itsoffset', '3', '-t', '7', '-i', source.film, '-map', '0:v', '-map', '1:a', '-c', 'copy'];
    await source.ffmpeg('-i', source.film, ...late, 'late.mkv');
    await source.ffmpeg('-i', source.film, ...late, '-metadata:s:a', '_STATISTICS_TAGS=DURATION', 'merged.mkv');
    const merged = readFileSync(source.path('merged.mkv'));
    merged.write('00:00:04.010', merged.indexOf('00:00:07.010'), 'latin1');
    source.write('merged.mkv', merged);
  });
  after(() => source.stop());

  for (const told of [60_000, 3000, 0]) {
    it(`D33 D66: lasts as long as its tracks, although its head tells ${told / 1000} s (mp4)`, async () => {
      const film = readFileSync(source.path('front.mp4'));
      film.writeUInt32BE(told, film.indexOf('mvhd') + 20);
      const name = `${told}.mp4`;
      source.write(name, film);
      expect(await source.inspect(name)).to.include({ duration: 10 });
      const length = await source.make('video', name, {}, async ({ file, metadata }) => {
        await expectMarks(file);
        expect((await look(file)).duration).to.be.closeTo(10, 0.05);
        return metadata.duration;
      });
      expect(length).to.equal(10);
      expect(await source.make('video', name, { start: 15, end: 20 }, () => 'a file')).to.match(/^start_beyond_end/);
      expect(await source.make('video', name, { start: 3, end: 8 }, ({ file }) => expectMarks(file, 3, 8))).to.equal(
        undefined,
      );
    });
  }

  // ffmpeg tells in a tag when a stream ends, mkvmerge how long it lasts.
  for (const name of ['late.mkv', 'merged.mkv']) {
    it(`D33: whose sound lasts from its third to its seventh second is delivered as that sound, and in parts (${name})`, async () => {
      const beeps = (args: object) =>
        source.make('audio', name, args, async ({ file }) =>
          (await marksOf(file)).beeps.map((second) => Math.round(second * 10) / 10),
        );
      expect(await beeps({ audio_format: 'mp3' })).to.deep.equal([0.6, 1.9, 3.5]);
      expect(await beeps({ audio_format: 'wav', start: 6 })).to.deep.equal([0.5]);
    });
  }

  it('D31: whose sound ends before its picture has no part of that sound behind it, and pictures alone (mkv)', async () => {
    expect(await source.make('audio', 'late.mkv', { start: 8 }, () => 'a file')).to.match(/^start_beyond_end/);
    expect(await source.make('video', 'late.mkv', { start: 8 }, ({ file }) => marksOf(file))).to.deep.equal({
      flashes: [0.32, 1.12],
      beeps: [],
    });
  });

  for (const name of ['words.mkv', 'words.webm']) {
    it(`D31: whose subtitles last longer than its picture has no part behind that picture (${name})`, async () => {
      for (const args of [{ start: 15 }, { start: 15, end: 20, video_format: 'mkv' }])
        expect(await source.make('video', name, args, () => 'a file')).to.match(/^start_beyond_end/);
      expect(await source.make('audio', name, { start: 15 }, () => 'a file')).to.match(/^start_beyond_end/);
      expect(await source.make('video', name, { start: 3 }, ({ file }) => expectMarks(file, 3, 10))).to.equal(
        undefined,
      );
    });
  }
});
