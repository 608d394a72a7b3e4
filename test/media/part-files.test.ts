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

  /** Returns a RIFF with another length of the whole. */
  const withLength = (riff: Buffer, length: number) => {
    const changed = Buffer.from(riff);
    changed.writeUInt32LE(length, 4);
    return changed;
  };
  const expectBeeps = async (name: string) => {
    const beeps = await source.make('audio', name, { audio_format: 'mp3' }, ({ file }) => marksOf(file).beeps);
    expect(beeps, name).to.have.lengthOf(marks.length);
  };

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

  it('D33: is delivered when it is a WAV whose program did not know its length, as in a pipe, and when others are joined to that one', async () => {
    const words = ['-v', 'error', '-i', source.film, '-vn', '-f', 'wav', 'pipe:1'];
    source.write('pipe.wav', execFileSync('ffmpeg', words, { cwd: source.path('.'), maxBuffer: 2 ** 24 }));
    await expectBeeps('pipe.wav');
    const pipe = readFileSync(source.path('pipe.wav'));
    source.write('pipes.wav', Buffer.concat([pipe, pipe]));
    const length = await source.make('audio', 'pipes.wav', {}, ({ file }) => look(file).duration);
    expect(length).to.be.closeTo(20, 0.2);
  });

  it('D33: is delivered whole where its head is wrong about what its reader does not look at', async () => {
    const [wav, aiff, avi] = ['wav', 'aiff', 'avi'].map((name) => readFileSync(source.path(`one.${name}`))) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    source.write('wrong.wav', withLength(wav, 2 * wav.length));
    source.write('wrong.avi', withLength(avi, 2 * avi.length));
    const longAiff = Buffer.from(aiff);
    longAiff.writeUInt32BE(2 * aiff.length, 4);
    source.write('wrong.aiff', longAiff);
    source.write('no-index.avi', avi.subarray(0, avi.lastIndexOf('idx1')));
    for (const name of ['wrong.wav', 'wrong.avi', 'wrong.aiff', 'no-index.avi']) await expectBeeps(name);
  });

  it('D33: is delivered whole when it is a WAV with another one inside of it', async () => {
    const wav = readFileSync(source.path('one.wav'));
    const chunk = (name: string) => {
      const head = Buffer.from(`${name}\0\0\0\0`, 'latin1');
      head.writeUInt32LE(wav.length, 4);
      return Buffer.concat([head, wav]);
    };
    const attached = Buffer.concat([wav, chunk('id3 ')]);
    source.write('attached.wav', withLength(attached, attached.length - 8));
    // Its length of the whole, its kind of file and the format of its sound.
    const wrapped = Buffer.concat([wav.subarray(0, 36), chunk('data')]);
    source.write('wrapped.wav', withLength(wrapped, wrapped.length - 8));
    for (const name of ['attached.wav', 'wrapped.wav']) await expectBeeps(name);
  });

  it('D33: is delivered whole when it is an MP4 with a second index of the same media', async () => {
    const mp4 = readFileSync(source.path('one.mp4'));
    source.write('indexes.mp4', Buffer.concat([mp4, mp4.subarray(mp4.lastIndexOf('moov') - 4)]));
    await expectBeeps('indexes.mp4');
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
