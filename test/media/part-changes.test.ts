import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { readPartChanges } from '../../src/media/part-changes.ts';
import { testsAtOnce } from '../support/at-once.ts';
import { type Flashes, openFlashes } from '../support/flashes.ts';
import { decode, look, recordLive, run } from '../support/media.ts';

/** Seconds of each of the two parts, and the pitch of their sound. */
const [seconds, first, second] = [4, 440, 880];
const sizes = [
  ['small', '64x36'],
  ['large', '96x54'],
] as const;
const codecs = [
  ['h264', []],
  ['hevc', ['-c:v', 'libx265', '-x265-params', 'log-level=none']],
  ['mpeg2', ['-c:v', 'mpeg2video', '-q:v', '3']],
] as const;

describe('A stream whose parts differ', () => {
  const it = testsAtOnce(3);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await addPart(source, 'one', first, 48_000, 2);
    await addPart(source, 'rate', second, 44_100, 2);
    await addPart(source, 'mono', second, 48_000, 1);
    await addPart(source, 'numbers', second, 48_000, 2, ['-mpegts_start_pid', '0x300']);
    await addPart(source, 'number', second, 48_000, 2, ['-streamid', '1:0x140']);
    await addPart(source, 'size', second, 48_000, 2, ['-s', '96x54']);
    for (const name of ['rate', 'numbers', 'number', 'size']) addList(source, name, 'ts');
    for (const [codec, words] of codecs) {
      for (const [name, size] of sizes)
        await addPart(source, `${codec}-${name}`, first, 48_000, 2, [...words, '-s', size]);
    }
    writeList(source, 'between.ts', ['one.ts', 'numbers.ts', 'one.ts']);
    for (const name of ['one', 'rate'])
      await source.ffmpeg('-i', `${name}.ts`, '-map', '0:a', '-c', 'copy', `${name}.aac`);
    addList(source, 'rate', 'aac');
  });
  after(() => source.stop());

  const [film, sound] = [{ video_format: 'mp4' }, { audio_format: 'm4a', audio_quality: 'best' }];
  for (const [endpoint, name, args, length] of [
    ['video', 'rate.ts.m3u8', film, 8],
    ['video', 'rate.ts.m3u8', { video_format: 'mkv' }, 8],
    ['video', 'rate.ts.m3u8', { ...film, start: 2, end: 7 }, 5],
    ['audio', 'rate.ts.m3u8', sound, 8],
    ['audio', 'rate.ts.m3u8', { ...sound, start: 2, end: 7 }, 5],
    ['audio', 'rate.aac.m3u8', sound, 8],
    ['audio', 'rate.aac.m3u8', { ...sound, start: 2, end: 7 }, 5],
    ['video', 'numbers.ts.m3u8', film, 8],
    ['video', 'number.ts.m3u8', film, 8],
    ['video', 'number.ts.m3u8', { ...film, start: 2, end: 7 }, 5],
    ['audio', 'numbers.ts.m3u8', sound, 8],
    ['audio', 'size.ts.m3u8', sound, 8],
  ] as const) {
    it(`D33: sounds to its end as its source does (${endpoint}, ${name}, ${JSON.stringify(args)})`, async () => {
      const ended = await source.make(endpoint, name, args, async ({ file }) => {
        for (const { kind, duration } of (await look(file)).streams) {
          if (duration !== null) expect(duration, kind).to.be.closeTo(length, 0.3);
        }
        const pitches = await pitchesOf(file);
        expect(pitches.length).to.be.closeTo(length, 1);
        expect(pitches[0]).to.be.closeTo(first, 10);
        expect(pitches.at(-1)).to.be.closeTo(second, 10);
      });
      expect(ended).to.equal(undefined);
    });
  }

  it('D33: is delivered with a part in its middle whose streams have other numbers', async () => {
    for (const [endpoint, args] of [
      ['video', film],
      ['audio', sound],
    ] as const) {
      const pitches = await source.make(endpoint, 'between.ts.m3u8', args, ({ file }) => pitchesOf(file));
      expect(pitches, endpoint).to.be.an('array');
      for (const [n, pitch] of [first, second, first].entries()) {
        expect(pitches[seconds * n + 1], `${endpoint}, part ${n}`).to.be.closeTo(pitch, 10);
      }
    }
  });

  it('D62: with pictures of two sizes is no film for one file', async () => {
    for (const args of [film, { video_format: 'mkv' }, { ...film, start: 2, end: 7 }]) {
      expect(await source.make('video', 'size.ts.m3u8', args, () => 'a file')).to.match(/^unsupported_url/);
    }
    expect(await source.make('video', 'size.ts.m3u8', { ...film, end: 2 }, () => 'a file')).to.equal('a file');
  });

  /** Expects the first of two parts of a live stream, whose second one appears while the first is fetched. */
  const expectFirst = async (names: readonly string[]) => {
    const parts = names.slice(0, 1);
    const serve: RequestListener = (request, response) => {
      const name = (request.url ?? '').slice(1);
      if (name === names[0]) parts[1] = names[1] ?? '';
      if (name !== 'live.m3u8')
        return void response.setHeader('content-type', 'video/mp2t').end(readFileSync(source.path(name)));
      response.setHeader('content-type', 'application/vnd.apple.mpegurl').end(listOf(parts));
    };
    const { seconds: length } = await recordLive(serve, '/live.m3u8', { ...film, max_duration: 8 });
    expect(length).to.be.closeTo(seconds, 0.2);
  };

  for (const [codec] of codecs) {
    it(`D62: with pictures of two sizes in ${codec} is no film for one file, whether a list tells of the change or not`, async () => {
      const names = sizes.map(([name]) => `${codec}-${name}.ts`);
      const [told, untold, direct] = ['told.m3u8', 'untold.m3u8', 'direct.ts'].map((name) => `${codec}-${name}`);
      writeList(source, `${codec}-told`, names);
      source.write(untold ?? '', `${listOf(names).replace('#EXT-X-DISCONTINUITY\n', '')}#EXT-X-ENDLIST\n`);
      source.write(direct ?? '', Buffer.concat(names.map((name) => readFileSync(source.path(name)))));
      for (const [name = '', args] of [
        [told, film],
        [untold, film],
        [direct, { ...film, max_duration: 7 }],
      ] as const) {
        expect(await source.make('video', name, args, () => 'a file'), name).to.match(/^unsupported_url/);
      }
    });

    it(`D65: is recorded up to where its pictures in ${codec} have another size`, () =>
      expectFirst(sizes.map(([name]) => `${codec}-${name}.ts`)));
  }

  for (const [title, kind, words] of [
    ['sound in MP3', 'sound', ['-c:a', 'libmp3lame']],
    ['sound in AC-3', 'sound', ['-c:a', 'ac3']],
    ['pictures in MPEG-2', 'picture', ['-c:v', 'mpeg2video']],
  ] as const) {
    it(`D62: whose first part has ${title}, and whose second one has another codec, is no film for one file`, async () => {
      const name = title.replaceAll(/\W/g, '-');
      await addPart(source, name, second, 48_000, 2, words);
      const parts = [`${name}.ts`, 'one.ts'];
      writeList(source, name, parts);
      source.write(`${name}-joined.ts`, Buffer.concat(parts.map((part) => readFileSync(source.path(part)))));
      for (const path of [`${name}.m3u8`, `${name}-joined.ts`]) {
        const ended = await source.make('video', path, film, () => 'a file');
        expect(ended, path).to.equal('unsupported_url it goes on with other streams');
      }
      const other =
        kind === 'sound' ? (['video', { ...film, download_type: 'video' }] as const) : (['audio', sound] as const);
      expect(await source.make(other[0], `${name}.m3u8`, other[1], ({ file }) => decode(file))).to.equal('');
    });
  }

  it('D65: is recorded up to where its sound or its pictures have another codec', async () => {
    await addPart(source, 'mp3', second, 48_000, 2, ['-c:a', 'libmp3lame']);
    for (const name of ['mp3', 'mpeg2-small']) await expectFirst(['one.ts', `${name}.ts`]);
  });

  it('D33: is delivered with its sound where that begins behind a silent part of 7 s', async () => {
    const picture = ['-f', 'lavfi', '-t', '7', '-i', 'color=s=64x36:r=25', '-c:v', 'libx264', '-pix_fmt', 'yuv420p'];
    await source.ffmpeg(...picture, 'silent.ts');
    const parts = ['silent.ts', 'one.ts', 'silent.ts'];
    source.write('late.ts', Buffer.concat(parts.map((part) => readFileSync(source.path(part)))));
    const sounds = await source.make('video', 'late.ts', film, async ({ file }) => [
      (await look(file)).audio?.begin,
      await pitchesOf(file),
    ]);
    expect(sounds[0]).to.be.closeTo(7, 0.2);
    expect(sounds[1]).to.have.length(seconds);
  });

  it('D33: is delivered as a silent film where its table lists sound that never comes', async () => {
    const packets = readFileSync(source.path('one.ts'));
    const starts = Array.from({ length: packets.length / 188 }, (_, n) => 188 * n);
    const kept = starts.filter((at) => (packets.readUInt16BE(at + 1) & 0x1fff) !== 0x101);
    source.write('never.ts', Buffer.concat(kept.map((at) => packets.subarray(at, at + 188))));
    const kinds = await source.make('video', 'never.ts', film, async ({ file }) =>
      (await look(file)).streams.map(({ kind }) => kind),
    );
    expect(kinds).to.deep.equal(['video']);
    expect(await source.make('audio', 'never.ts', sound, () => 'a file')).to.match(/^no_audio/);
  });

  it('D62: with pictures of ever new sizes is refused at the second one', async () => {
    await addPart(source, 'huge', first, 48_000, 2, ['-s', '128x72']);
    const names = [...sizes.map(([name]) => `h264-${name}.ts`), 'huge.ts'];
    source.write('ever.ts', Buffer.concat(names.map((name) => readFileSync(source.path(name)))));
    const ended = await source.make('video', 'ever.ts', film, () => 'a file');
    expect(ended).to.equal('unsupported_url the size of its picture changes: 64,36 96,54');
  });

  it('D62: as a broadcast by RTMP leaves it, is no film for one file when its pictures have two sizes', async () => {
    const parts = await Promise.all(
      sizes.map(async ([name]) => {
        await source.ffmpeg('-i', `h264-${name}.ts`, '-c', 'copy', `${name}.flv`);
        return readFileSync(source.path(`${name}.flv`));
      }),
    );
    // Behind the head of the file.
    const joined = (other: Buffer | undefined) =>
      Buffer.concat([parts[0] ?? '', other?.subarray(13) ?? ''] as Buffer[]);
    source.write('changes.flv', joined(parts[1]));
    source.write('same.flv', joined(parts[0]));
    expect(await source.make('video', 'changes.flv', film, () => 'a file')).to.match(/^unsupported_url/);
    expect(await source.make('video', 'same.flv', film, () => 'a file')).to.equal('a file');
  });

  it('is copied when its pictures are coded in two ways and have one size', async () => {
    await addPart(source, 'other-way', first, 48_000, 2, ['-profile:v', 'high', '-preset', 'medium', '-bf', '3']);
    writeList(source, 'ways', ['one.ts', 'other-way.ts']);
    expect(await source.make('video', 'ways.m3u8', film, ({ file }) => decode(file))).to.equal('');
  });

  it('D32: is copied when its tracks differ only from each other, as languages do', async () => {
    const tracks = ['-i', 'one.ts', '-i', 'mono.ts', '-map', '0:v', '-map', '0:a', '-map', '1:a', '-c', 'copy'];
    await source.ffmpeg(...tracks, 'tracks.ts');
    const { signal } = new AbortController();
    const { kindOf, ...changes } = await readPartChanges(source.path('tracks.ts'), 'mpegts', signal);
    const unchanged = { isRenumbered: false, changed: [], unlisted: [], sound: false, unread: false, cut: false };
    expect(changes).to.deep.equal(unchanged);
    expect(kindOf([256, 257])).to.equal('even');
  });

  it('is read to its end, whatever its bytes are', async () => {
    const { signal } = new AbortController();
    for (const bytes of [Buffer.alloc(5000, 0x47), Buffer.alloc(5000, 0xff), Buffer.from('G')]) {
      source.write('odd', bytes);
      for (const format of ['mpegts', 'aac', 'mov']) {
        expect(await readPartChanges(source.path('odd'), format, signal)).to.include({ isRenumbered: false });
      }
    }
  });

  it('is read in little memory when it is an Ogg that begins millions of streams', async () => {
    const beginning = Buffer.alloc(27);
    beginning.write('OggS\0\x02', 'latin1');
    source.write('streams.ogg', Buffer.alloc(27 * 2_500_000, beginning));
    const read = `import(process.argv[1]).then(({ readPartChanges }) =>
      readPartChanges(process.argv[2], 'ogg', new AbortController().signal)).then((changes) => console.log(changes.sound))`;
    const reader = import.meta.resolve('../../src/media/part-changes.ts');
    const words = ['--max-old-space-size=48', '-e', read, reader, source.path('streams.ogg')];
    expect((await run(process.execPath, words)).stdout).to.equal('false\n');
  });
});

async function addPart(
  source: Flashes,
  name: string,
  pitch: number,
  rate: number,
  channels: number,
  words: readonly string[] = [],
): Promise<void> {
  const picture = ['-f', 'lavfi', '-t', String(seconds), '-i', 'testsrc2=s=64x36:r=25'];
  const sine = ['-f', 'lavfi', '-t', String(seconds), '-i', `sine=f=${pitch}:r=${rate}`];
  const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-pix_fmt', 'yuv420p', '-c:a', 'aac'];
  await source.ffmpeg(...picture, ...sine, ...coded, '-ac', String(channels), ...words, `${name}.ts`);
}

/** Writes a list of the first part and another one. */
function addList(source: Flashes, name: string, ext: string): void {
  writeList(source, `${name}.${ext}`, [`one.${ext}`, `${name}.${ext}`]);
}

function writeList(source: Flashes, name: string, parts: readonly string[]): void {
  source.write(`${name}.m3u8`, `${listOf(parts)}#EXT-X-ENDLIST\n`);
}

function listOf(parts: readonly string[]): string {
  const lines = parts.map((part) => `#EXTINF:${seconds},\n${part}\n`).join('#EXT-X-DISCONTINUITY\n');
  return `#EXTM3U\n#EXT-X-TARGETDURATION:${seconds}\n${lines}`;
}

/** Returns the pitch of each whole second of the sound. */
async function pitchesOf(file: string): Promise<number[]> {
  const rate = 16_000;
  const words = ['-v', 'fatal', '-i', file, '-map', '0:a', '-ac', '1', '-ar', String(rate), '-f', 's16le', '-'];
  const { stdout } = await run('ffmpeg', words, { encoding: 'buffer', maxBuffer: 2 ** 26 });
  const samples = new Int16Array(stdout.buffer, stdout.byteOffset, stdout.length >> 1);
  return Array.from({ length: Math.floor(samples.length / rate) }, (_, n) => {
    const part = samples.subarray(n * rate, (n + 1) * rate);
    return part.reduce((count, sample, m) => count + Number(m > 0 && part[m - 1]! < 0 && sample >= 0), 0);
  });
}
