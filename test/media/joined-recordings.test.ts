import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { type Flashes, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { decode, durationOf } from '../support/media.ts';

/** Returns the tags of an FLV: a head of eleven bytes, what it holds, and its length. */
function tagsOf(flv: Buffer): Buffer[] {
  const tags: Buffer[] = [];
  for (let at = 13; at + 11 <= flv.length; at += tags.at(-1)?.length ?? 0) {
    tags.push(flv.subarray(at, at + 11 + flv.readUIntBE(at + 1, 3) + 4));
  }
  return tags;
}

/** Returns true for a tag with the header of H.264 or AAC. */
function isHeader(tag: Buffer): boolean {
  return (tag[0] === 9 || tag[0] === 8) && tag[12] === 0;
}

describe('A file that is joined of two recordings, whose times begin anew', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await source.ffmpeg('-i', source.film, '-c', 'copy', 'one.flv');
    const flv = readFileSync(source.path('one.flv'));
    const tags = tagsOf(flv).filter((tag) => tag[0] !== 18);
    source.write('twice.flv', Buffer.concat([flv.subarray(0, 13), ...tags, ...tags]));
    source.write('bare.flv', Buffer.concat([flv.subarray(0, 13), ...tags, ...tags.filter((tag) => !isHeader(tag))]));
    const headers = tags.filter(isHeader);
    const repeated = tags.flatMap((tag, n) =>
      tag[0] === 9 && n % 100 === 50 ? [...headers.map(at(tag)), tag] : [tag],
    );
    source.write('repeated.flv', Buffer.concat([flv.subarray(0, 13), ...repeated]));
    const others = ['-c:v', 'libx264', '-preset', 'medium', '-c:a', 'aac', '-ar', '44100', '-ac', '2'];
    await source.ffmpeg('-i', source.film, ...others, 'other.flv');
    const [sound, picture] = [8, 9].map((kind) =>
      tagsOf(readFileSync(source.path('other.flv'))).filter((tag) => tag[0] === kind),
    );
    const firsts = [8, 9].map((kind) => tags.filter((tag) => tag[0] === kind));
    source.write('sounds.flv', Buffer.concat([flv.subarray(0, 13), ...tags, ...firsts[1]!, ...sound!]));
    source.write('pictures.flv', Buffer.concat([flv.subarray(0, 13), ...tags, ...picture!, ...firsts[0]!]));
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-live', '1', 'one.mkv');
    await source.ffmpeg('-i', source.film, '-c:v', 'libvpx', '-deadline', 'realtime', '-c:a', 'libopus', 'one.webm');
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-movflags', 'frag_keyframe+empty_moov', 'one.mp4');
    for (const ext of ['mkv', 'webm', 'mp4']) {
      const one = readFileSync(source.path(`one.${ext}`));
      source.write(`twice.${ext}`, Buffer.concat([one, one]));
    }
    const wide = ['-vf', 'scale=96:54', '-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'copy', '-live', '1'];
    await source.ffmpeg('-i', source.film, ...wide, 'wide.mkv');
    const sizes = ['one.mkv', 'wide.mkv'].map((name) => readFileSync(source.path(name)));
    source.write('sizes.mkv', Buffer.concat(sizes));
    const slow = ['-vf', "select='lt(t,4)+not(mod(n,50))'", '-vsync', 'vfr', '-c:v', 'libx264', '-bf', '3'];
    for (const name of ['slow.mkv', 'slow.flv'])
      await source.ffmpeg('-i', source.film, ...slow, '-x264-params', 'b-adapt=0', '-c:a', 'copy', name);
  });
  after(() => source.stop());

  /** Returns a copy of a header at the time of another tag. */
  function at(tag: Buffer): (header: Buffer) => Buffer {
    return (header) => Buffer.concat([header.subarray(0, 4), tag.subarray(4, 8), header.subarray(8)]);
  }

  const expectBoth = async (endpoint: 'video' | 'audio', name: string, args: object) => {
    const { start: from = 0, end: to = 21 } = args as { start?: number; end?: number };
    const seen = await source.make(endpoint, name, args, async ({ file }) => {
      expect(await decode(file)).to.equal('');
      return await marksOf(file);
    });
    // The sound of the film ends 0.05 s behind its picture.
    const wanted = [...marks, ...marks.map((mark) => mark + 10.05)].filter((mark) => mark >= from && mark < to);
    const { flashes, beeps } = seen as Awaited<ReturnType<typeof marksOf>>;
    for (const seconds of endpoint === 'video' ? [flashes, beeps] : [beeps]) {
      expect(seconds, `${name} ${JSON.stringify(seen)}`).to.have.lengthOf(wanted.length);
      for (const [n, second] of seconds.entries()) expect(second).to.be.closeTo(wanted[n]! - from, 0.12);
    }
  };

  for (const [name, endpoint, args] of [
    ['twice.flv', 'video', { video_format: 'mp4' }],
    ['twice.flv', 'video', { video_format: 'webm' }],
    ['twice.flv', 'video', { video_format: 'mkv' }],
    ['bare.flv', 'video', { video_format: 'mp4' }],
    ['bare.flv', 'video', { video_format: 'mkv' }],
    ['twice.flv', 'video', { start: 8, end: 15 }],
    ['twice.flv', 'video', { end: 15 }],
    ['twice.flv', 'audio', { audio_format: 'm4a' }],
    ['sounds.flv', 'video', { video_format: 'mp4' }],
    ['sounds.flv', 'audio', { audio_format: 'm4a' }],
    ['pictures.flv', 'audio', { audio_format: 'm4a' }],
    ['twice.mkv', 'video', { video_format: 'mp4' }],
    ['twice.mkv', 'video', { video_format: 'mkv' }],
    ['twice.mkv', 'video', { end: 15 }],
    ['twice.mkv', 'audio', { audio_format: 'mp3' }],
    ['twice.webm', 'video', { video_format: 'webm' }],
  ] as const) {
    it(`D33: is delivered with both, one after the other (${name}, ${JSON.stringify(args)})`, () =>
      expectBoth(endpoint, name, args));
  }

  it('D33: is damaged when it is an MP4 in pieces', async () => {
    for (const video_format of ['mp4', 'mkv'])
      expect(await source.make('video', 'twice.mp4', { video_format }, () => 'a file')).to.match(/^file_damaged/);
  });

  for (const name of ['slow.mkv', 'slow.flv']) {
    it(`D33: is none whose pictures are slow and decoded in another order than they are shown (${name})`, async () => {
      const seen = await source.make('video', name, { video_format: 'mkv' }, ({ file }) => marksOf(file));
      const { flashes, beeps } = seen as Awaited<ReturnType<typeof marksOf>>;
      expect(beeps, JSON.stringify(seen)).to.have.lengthOf(marks.length);
      expect(flashes.slice(0, 3).map((second) => Math.round(second * 10) / 10)).to.deep.equal([0.6, 1.9, 3.5]);
    });
  }

  it('D62: is no film for one file when it is an FLV whose second one is coded otherwise', async () => {
    for (const video_format of ['mp4', 'mkv'])
      expect(await source.make('video', 'pictures.flv', { video_format }, () => 'a file')).to.match(
        /^unsupported_url the headers/,
      );
  });

  it('D62: is no film for one file when it is a Matroska whose second one has a larger picture', async () => {
    expect(await source.make('video', 'sizes.mkv', {}, () => 'a file')).to.match(/^unsupported_url the headers/);
  });

  for (const args of [{ video_format: 'mkv' }, { start: 3 }] as const) {
    it(`D33: is no more than an FLV that repeats its headers, and is delivered (${JSON.stringify(args)})`, async () => {
      const [from, to] = 'start' in args ? [3, 10] : [0, 10];
      const wanted = marks.filter((mark) => mark >= from && mark < to).map((mark) => mark - from);
      const seen = await source.make('video', 'repeated.flv', args, async ({ file }) => {
        expect(await decode(file)).to.equal('');
        return await marksOf(file);
      });
      expect(seen).to.have.keys('flashes', 'beeps');
      for (const seconds of Object.values(seen)) {
        expect(seconds, JSON.stringify(seen)).to.have.lengthOf(wanted.length);
        for (const [n, second] of wanted.entries()) expect(seconds[n]).to.be.closeTo(second, 0.12);
      }
    });
  }

  /** Writes a Matroska of silent recordings of 1.5 seconds. */
  const writeSilent = async (name: string, count: number) => {
    const silence = ['-f', 'lavfi', '-t', '1.5', '-i', 'aevalsrc=0:s=8000'];
    await source.ffmpeg(...silence, '-c:a', 'pcm_u8', '-live', '1', `one-${name}`);
    const one = readFileSync(source.path(`one-${name}`));
    source.write(name, Buffer.concat(Array.from({ length: count }, () => one)));
  };

  it('D33: is delivered whole when it has hundreds of them', async () => {
    await writeSilent('hundreds.mkv', 250);
    const wav = { audio_format: 'wav' };
    expect(await source.make('audio', 'hundreds.mkv', wav, ({ file }) => durationOf(file))).to.be.closeTo(375, 1);
  });

  it('D33: is damaged, and is counted no farther, when it has more of them than are joined', async () => {
    await writeSilent('many.mkv', 510);
    const seen = await source.make('audio', 'many.mkv', {}, () => 'a file');
    expect(seen).to.equal('file_damaged its times begin anew: 501 recordings');
  });

  it('D33: is not an FLV whose header tells of a picture that never comes, and is no film', async () => {
    const tags = tagsOf(readFileSync(source.path('repeated.flv')));
    const sounds = tags.filter((tag) => tag[0] === 8 || isHeader(tag));
    source.write('dark.flv', Buffer.concat([readFileSync(source.path('one.flv')).subarray(0, 13), ...sounds]));
    const seen = await source.make('video', 'dark.flv', {}, () => 'a file');
    expect(seen).to.be.a('string').that.does.not.include('undefined').and.does.not.equal('a file');
    expect(await source.make('audio', 'dark.flv', { audio_format: 'm4a' }, () => 'a file')).to.equal('a file');
  });
});
