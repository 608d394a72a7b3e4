import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, isInOrder, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { decode, look } from '../support/media.ts';

/** Files of DVD, broadcasting, FLV and QuickTime: how they are coded, and whether a Matroska takes their picture. */
const files = [
  ['dvd.vob', ['-c:v', 'mpeg2video', '-c:a', 'pcm_dvd', '-f', 'vob'], 'mpeg2video'],
  ['broadcast.ts', ['-c:v', 'mpeg2video', '-ac', '2', '-c:a', 's302m', '-strict', '-2'], 'mpeg2video'],
  ['disc.m2ts', ['-c:v', 'mpeg2video', '-ac', '2', '-c:a', 'pcm_bluray', '-f', 'mpegts'], 'mpeg2video'],
  ['web.flv', ['-c:v', 'flv1', '-ar', '44100', '-c:a', 'nellymoser'], 'flv1'],
  ['screen.flv', ['-c:v', 'flashsv2', '-ar', '44100', '-c:a', 'libmp3lame'], 'h264'],
  ['old.mov', ['-c:v', 'qtrle', '-c:a', 'adpcm_ima_qt'], 'h264'],
] as const;

describe('A film that a container of ours cannot hold as it is', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    for (const [name, words] of files) await source.ffmpeg('-i', source.film, ...words, name);
  });
  after(() => source.stop());

  for (const [name, , picture] of files) {
    for (const [args, from, to] of [
      [{ video_format: 'mkv' }, 0, 10],
      [{ video_format: 'mp4', start: 3, end: 8 }, 3, 8],
    ] as const) {
      it(`D32: is delivered with that codec encoded (${name}, ${JSON.stringify(args)})`, async () => {
        const ended = await source.make('video', name, args, async ({ file }) => {
          expect(await decode(file)).to.equal('');
          if (from === 0) expect((await look(file)).video?.codec).to.equal(picture);
          await expectMarks(file, from, to);
        });
        expect(ended).to.equal(undefined);
      });
    }
  }

  it('D64: is delivered as sound that an m4a holds', async () => {
    for (const name of ['dvd.vob', 'old.mov']) {
      const args = { download_type: 'audio', video_format: 'mkv' };
      expect(await source.make('video', name, args, ({ ext }) => ext)).to.equal('m4a');
    }
  });

  it('D31: has its pictures in time with its sound when only a part of a Theora is fetched, which leaves out equal ones', async () => {
    await source.ffmpeg('-i', source.film, '-c:v', 'libtheora', '-c:a', 'libvorbis', 'still.ogv');
    const args = { video_format: 'mkv', max_duration: 8 };
    const ended = await source.make('video', 'still.ogv', args, ({ file }) => expectMarks(file, 0, 8));
    expect(ended).to.equal(undefined);
  });

  for (const name of ['bare.h264', 'bare.hevc']) {
    it(`D33: is delivered with its pictures in their order, also from a second on, when it is a bare stream, which has no times (${name})`, async () => {
      const coded = ['-c:v', name.endsWith('hevc') ? 'libx265' : 'libx264', '-preset', 'ultrafast', '-bf', '2'];
      await source.ffmpeg('-i', source.film, '-an', ...coded, name);
      for (const video_format of ['mp4', 'mkv']) {
        const ended = await source.make('video', name, { video_format }, async ({ file }) => {
          expect(await isInOrder(file)).to.equal(true);
          const { flashes } = await marksOf(file);
          expect(flashes).to.have.lengthOf(marks.length);
          for (const [n, second] of flashes.entries()) expect(second).to.be.closeTo(marks[n]!, 0.12);
        });
        expect(ended).to.equal(undefined);
      }
      for (const args of [{ start: 3 }, { start: 3, end: 8 }]) {
        const seen = await source.make('video', name, args, async ({ file }) => (await marksOf(file)).flashes);
        const wanted = marks.filter((mark) => mark >= 3 && mark < ('end' in args ? 8 : 10)).map((mark) => mark - 3);
        expect(seen).to.be.an('array').with.lengthOf(wanted.length);
        for (const [n, second] of wanted.entries()) expect(seen[n]).to.be.closeTo(second, 0.05);
      }
    });
  }

  it('D33: is damaged when it has pictures without times that no decoder can order (mkv)', async () => {
    const negative = ['-output_ts_offset', '-0.5', '-avoid_negative_ts', 'disabled'];
    await source.ffmpeg('-i', source.film, '-c', 'copy', ...negative, 'negative.mkv');
    expect(await source.make('video', 'negative.mkv', { video_format: 'mkv' }, () => 'a file')).to.match(
      /^file_damaged/,
    );
  });

  for (const [name, words] of [
    [
      'ten.wav',
      [
        '-filter_complex',
        '[0:a]asplit=10[a][b][c][d][e][f][g][h][i][j];[a][b][c][d][e][f][g][h][i][j]amerge=inputs=10',
      ],
    ],
    ['one.spx', ['-vn', '-ar', '16000', '-ac', '1', '-c:a', 'libspeex']],
  ] as const) {
    it(`D32: whose channels have no places that an encoder knows is encoded with all of its sound (${name})`, async () => {
      await source.ffmpeg('-i', source.film, ...words, name);
      for (const audio_format of ['m4a', 'mp3']) {
        const seen = await source.make('audio', name, { audio_format }, async ({ file }) => {
          expect(await decode(file)).to.equal('');
          return (await marksOf(file)).beeps;
        });
        expect(seen).to.be.an('array').with.lengthOf(marks.length);
      }
    });
  }
});
