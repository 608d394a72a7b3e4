import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { type Flashes, isInOrder, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

/** Formats whose reader ends where another file begins, and formats whose head tells how long the file is. */
const joined = ['flv', 'wmv', 'mp4', 'wav', 'flac', 'aiff'] as const;
const told = ['flv', 'wmv', 'avi', 'wav', 'aiff'] as const;
const hasPicture = (name: string) => /flv|wmv|avi|mp4/.test(name);

describe('A file by direct link of which only a part can be read', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    const coded: Readonly<Record<string, readonly string[]>> = {
      wmv: ['-c:v', 'wmv2', '-c:a', 'wmav2'],
      avi: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
    };
    for (const name of new Set([...joined, ...told])) {
      const words = coded[name] ?? (hasPicture(name) ? ['-c', 'copy'] : ['-vn']);
      source.ffmpeg('-i', source.film, ...words, `one.${name}`);
      const one = readFileSync(source.path(`one.${name}`));
      source.write(`twice.${name}`, Buffer.concat([one, one]));
      source.write(`short.${name}`, one.subarray(0, Math.floor(one.length * 0.6)));
    }
  });
  after(() => source.stop());

  const orders = (name: string) =>
    [
      ['video', { video_format: 'mkv' }],
      ['audio', { audio_format: 'm4a' }],
    ].filter(([endpoint]) => endpoint === 'audio' || hasPicture(name)) as ['video' | 'audio', object][];

  for (const [names, part, reason] of [
    [joined, 'twice', 'because another file is joined to it'],
    [told, 'short', 'because it is shorter than its head says'],
  ] as const) {
    for (const name of names) {
      it(`D33: is damaged ${reason} (${name})`, async () => {
        for (const [endpoint, args] of orders(name))
          expect(await source.make(endpoint, `${part}.${name}`, args, () => 'a file')).to.match(
            /^file_damaged (another file|ends after|\d+ of)/,
          );
      });
    }
  }

  it('D33: is delivered when it is whole, and when others are joined to it that its reader reads (AVI)', async () => {
    for (const name of new Set([...joined, ...told]))
      expect(await source.make('audio', `one.${name}`, {}, ({ file }) => look(file).duration)).to.be.closeTo(10, 0.2);
    const twice = await source.make('video', 'twice.avi', {}, ({ file }) => marksOf(file));
    expect((twice as ReturnType<typeof marksOf>).flashes).to.have.lengthOf(2 * marks.length);
  });

  it('D33: is delivered when it is a WAV whose program did not know its length, as in a pipe', async () => {
    const words = ['-v', 'error', '-i', source.film, '-vn', '-f', 'wav', 'pipe:1'];
    source.write('pipe.wav', execFileSync('ffmpeg', words, { cwd: source.path('.'), maxBuffer: 2 ** 24 }));
    const beeps = await source.make('audio', 'pipe.wav', {}, ({ file }) => marksOf(file).beeps);
    expect(beeps).to.have.lengthOf(marks.length);
  });

  it('D33: is delivered with all that follows the 24 bits of its times, when it is an FLV that has no more of them', async () => {
    const picture = ['-f', 'lavfi', '-t', '16800', '-i', 'color=black:s=32x32:r=2'];
    const sound = ['-f', 'lavfi', '-t', '16800', '-i', 'anullsrc=r=11025:cl=mono'];
    const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '60', '-c:a', 'libmp3lame'];
    source.ffmpeg(...picture, ...sound, ...coded, 'long.flv');
    const flv = readFileSync(source.path('long.flv'));
    // A tag: kind, length, time with its highest byte last, three bytes, what it holds, and its length.
    for (let at = 13; at + 11 <= flv.length; at += 15 + flv.readUIntBE(at + 1, 3)) flv[at + 7] = 0;
    source.write('long.flv', flv);
    const seen = await source.make('video', 'long.flv', { video_format: 'mkv' }, ({ file }) => {
      expect(isInOrder(file)).to.equal(true);
      return look(file).duration;
    });
    expect(seen).to.be.closeTo(16_800, 2);
  });
});
