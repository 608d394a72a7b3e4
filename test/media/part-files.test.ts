import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { beepsOf, type Flashes, isInOrder, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { durationOf, look } from '../support/media.ts';

/** Formats whose reader ends where another file begins, and formats whose head tells how long the file is. */
const joined = ['flv', 'wmv', 'mp4', 'wav', 'flac', 'aiff'] as const;
const told = ['flv', 'wmv', 'avi', 'wav', 'aiff', 'caf', 'mp3', 'ogg'] as const;
const hasPicture = (name: string) => /flv|wmv|avi|mp4/.test(name);

describe('A file by direct link of which only a part can be read', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    const coded: Readonly<Record<string, readonly string[]>> = {
      wmv: ['-c:v', 'wmv2', '-c:a', 'wmav2'],
      avi: ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
      caf: ['-vn', '-c:a', 'pcm_s16le'],
      ogg: ['-vn', '-c:a', 'libvorbis'],
    };
    for (const name of new Set([...joined, ...told])) {
      const words = coded[name] ?? (hasPicture(name) ? ['-c', 'copy'] : ['-vn']);
      await source.ffmpeg('-i', source.film, ...words, `one.${name}`);
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
    const beeps = await source.make('audio', name, { audio_format: 'mp3' }, ({ file }) => beepsOf(file));
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
            /^file_damaged (another file|ends after|\d+ of|ends inside of a page)/,
          );
      });
    }
  }

  for (const name of [...told, 'mkv']) {
    it(`D31: is damaged where its part should reach beyond its end, and is delivered up to there (${name})`, async () => {
      if (name === 'mkv') {
        await source.ffmpeg('-i', source.film, '-c', 'copy', 'one.mkv');
        source.write('short.mkv', readFileSync(source.path('one.mkv')).subarray(0, 14_000));
      }
      for (const max_duration of [9, 15])
        expect(await source.make('audio', `short.${name}`, { max_duration }, () => 'a file')).to.match(/^file_damaged/);
      const length = (file: string, max_duration: number) =>
        source.make('audio', file, { max_duration }, ({ file }) => durationOf(file));
      expect(await length(`short.${name}`, 3)).to.be.closeTo(3, 0.2);
      expect(await length(`one.${name}`, 15)).to.be.closeTo(10, 0.2);
    });
  }

  for (const name of ['flv', 'wmv', 'wav', 'aiff']) {
    it(`D31: is damaged where its part should reach into another file that is joined to it (${name})`, async () => {
      const make = (args: object) => source.make('audio', `twice.${name}`, args, ({ file }) => durationOf(file));
      expect(await make({ max_duration: 15 })).to.match(/^file_damaged another file/);
      expect(await make({ max_duration: 5 })).to.be.closeTo(5, 0.2);
    });
  }

  it('D33: is delivered when it is whole, and when others are joined to it that its reader reads (AVI)', async () => {
    for (const name of new Set([...joined, ...told]))
      expect(await source.make('audio', `one.${name}`, {}, ({ file }) => durationOf(file))).to.be.closeTo(10, 0.2);
    const twice = await source.make('video', 'twice.avi', {}, ({ file }) => marksOf(file));
    expect((twice as Awaited<ReturnType<typeof marksOf>>).flashes).to.have.lengthOf(2 * marks.length);
  });

  it('D33: is delivered when it is a WAV whose program did not know its length, as in a pipe, and when others are joined to that one', async () => {
    const words = ['-v', 'error', '-i', source.film, '-vn', '-f', 'wav', 'pipe:1'];
    source.write('pipe.wav', execFileSync('ffmpeg', words, { cwd: source.path('.'), maxBuffer: 2 ** 24 }));
    await expectBeeps('pipe.wav');
    const pipe = readFileSync(source.path('pipe.wav'));
    source.write('pipes.wav', Buffer.concat([pipe, pipe]));
    const length = await source.make('audio', 'pipes.wav', {}, ({ file }) => durationOf(file));
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

  it('D33: is delivered whole where its head tells a length that another place disproves', async () => {
    const [wav, flv, wmv, mp3] = ['wav', 'flv', 'wmv', 'mp3'].map((name) =>
      readFileSync(source.path(`one.${name}`)),
    ) as [Buffer, Buffer, Buffer, Buffer];
    for (const length of [1e9, 2e9]) {
      const round = withLength(wav, length + 36);
      round.writeUInt32LE(length, round.indexOf('data') + 4);
      source.write(`${length}.wav`, round);
      await expectBeeps(`${length}.wav`);
    }
    flv.writeDoubleBE(30, flv.indexOf('duration') + 9);
    wmv.writeBigUInt64LE(
      2n * BigInt(wmv.length),
      wmv.indexOf(Buffer.from('a1dcab8c47a9cf118ee400c00c205365', 'hex')) + 40,
    );
    // Behind flags and frames: the bytes, which here count a tag that was removed.
    mp3.writeUInt32BE(2 * mp3.length, mp3.indexOf('Xing') + 12);
    for (const [name, content] of Object.entries({ 'old.flv': flv, 'old.wmv': wmv, 'old.mp3': mp3 })) {
      source.write(name, content);
      await expectBeeps(name);
    }
  });

  for (const [name, media] of [
    ['wav', 'data'],
    ['aiff', 'SSND'],
    ['avi', 'LIST....movi'],
  ] as const) {
    it(`D33: is known to be shorter than its head says also where much lies before its media (${name})`, async () => {
      const one = readFileSync(source.path(`one.${name}`));
      const at = one.toString('latin1').search(new RegExp(media, 's'));
      const cover = Buffer.alloc(8 + 100_000);
      cover.write('JUNK');
      if (name === 'aiff') cover.writeUInt32BE(100_000, 4);
      else cover.writeUInt32LE(100_000, 4);
      const far = Buffer.concat([one.subarray(0, at), cover, one.subarray(at)]);
      source.write(`far.${name}`, far);
      source.write(`far-short.${name}`, far.subarray(0, 100_000 + Math.floor(one.length * 0.6)));
      await expectBeeps(`far.${name}`);
      expect(await source.make('audio', `far-short.${name}`, {}, () => 'a file')).to.match(/^file_damaged \d+ of/);
    });
  }

  it('D33: is delivered when it is an Ogg that somebody recorded of a radio, up to the middle of a page', async () => {
    await source.ffmpeg('-i', 'one.ogg', '-c', 'copy', '-output_ts_offset', '100', 'late.ogg');
    for (const name of ['twice.ogg', 'late.ogg']) {
      const one = readFileSync(source.path('one.ogg'));
      if (name === 'twice.ogg') source.write(name, Buffer.concat([one, one]));
      const whole = readFileSync(source.path(name));
      source.write(`cut.${name}`, whole.subarray(0, whole.length - 1000));
      expect(await source.make('audio', `cut.${name}`, {}, () => 'a file'), name).to.equal('a file');
    }
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
    await source.ffmpeg(...picture, ...sound, ...coded, 'long.flv');
    const flv = readFileSync(source.path('long.flv'));
    // A tag: kind, length, time with its highest byte last, three bytes, what it holds, and its length.
    for (let at = 13; at + 11 <= flv.length; at += 15 + flv.readUIntBE(at + 1, 3)) flv[at + 7] = 0;
    source.write('long.flv', flv);
    const seen = await source.make('video', 'long.flv', { video_format: 'mkv' }, async ({ file }) => {
      expect(await isInOrder(file)).to.equal(true);
      return (await look(file)).duration;
    });
    expect(seen).to.be.closeTo(16_800, 2);
  });
});
