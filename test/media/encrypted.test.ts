import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Flashes, openFlashes, strict } from '../support/flashes.ts';

/** Words for ffmpeg that encrypt the samples of a film. */
const scrambled = [
  ...['-c', 'copy', '-bsf:v', 'filter_units=remove_types=6', '-encryption_scheme', 'cenc-aes-ctr'],
  ...['-encryption_key', '0'.repeat(32), '-encryption_kid', '1'.repeat(32)],
];

/** Boxes that say how samples are encrypted: without them, ffprobe tells of none, as of clear ones that precede others. */
const ofSamples = /tenc|senc|saiz|saio/g;

describe('A file', () => {
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
  });
  after(() => source.stop());

  it('D60: whose samples are encrypted is protected, wherever its index lies, and although ffprobe reads it like any other one', async () => {
    for (const [name, flags] of [
      ['front.scrambled.mp4', ['-movflags', 'faststart']],
      ['back.scrambled.mp4', []],
      ['pieces.scrambled.mp4', ['-movflags', 'frag_keyframe+empty_moov']],
    ] as const) {
      await source.ffmpeg('-i', source.film, ...scrambled, ...flags, name);
      for (const [endpoint, args] of [
        ['video', {}],
        ['audio', { max_duration: 3 }],
      ] as const) {
        const ended = await source.make(endpoint, name, args, () => 'delivered');
        expect(ended, `${name} ${JSON.stringify(args)}`).to.match(/^drm_protected/);
      }
      // ffprobe reads no packet of encrypted pieces as ffmpeg writes them.
      if (!name.startsWith('pieces')) expect(await source.inspect(name), name).to.match(/^drm_protected/);
    }
  });

  it('D60: whose samples are those of an iTunes or Audible purchase is protected', async () => {
    await source.ffmpeg('-i', source.film, ...scrambled, 'common.mp4');
    const common = readFileSync(source.path('common.mp4'), 'latin1');
    for (const [video, audio] of [
      ['drmi', 'drms'],
      ['avc1', 'aavd'],
    ] as const) {
      const name = `${audio}.mp4`;
      source.write(name, Buffer.from(common.replace('encv', video).replace('enca', audio), 'latin1'));
      for (const args of [{}, { max_duration: 3 }]) {
        const ended = await source.make('video', name, args, () => 'delivered');
        expect(ended, `${name} ${JSON.stringify(args)}`).to.match(/^drm_protected/);
      }
    }
  });

  it('D60: of whose encrypted samples the first ones are clear is protected, also where only a part is fetched', async () => {
    await source.ffmpeg('-i', source.film, ...scrambled, '-movflags', 'frag_keyframe+empty_moov', 'pieces.mp4');
    const told = readFileSync(source.path('pieces.mp4'), 'latin1');
    source.write('lead.mp4', Buffer.from(told.replaceAll(ofSamples, 'free'), 'latin1'));
    // An index behind the samples, as in a film that was not made for the web.
    const box = Buffer.from('....mdat');
    box.writeUInt32BE(2 ** 20);
    source.write('late.mp4', Buffer.concat([box, Buffer.alloc(2 ** 20 - 8), readFileSync(source.path('lead.mp4'))]));
    // A source may refuse to send a piece that ends behind the file.
    for (const name of ['lead.mp4', 'late.mp4', `${strict}/late.mp4`]) {
      for (const args of [{}, { max_duration: 3 }]) {
        const ended = await source.make('video', name, args, () => 'delivered');
        expect(ended, `${name} ${JSON.stringify(args)}`).to.match(/^drm_protected/);
      }
      expect(await source.inspect(name), name).to.match(/^drm_protected/);
    }
  });

  it('is asked for its index in pieces, so that no source sends on what nobody reads', async () => {
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-movflags', 'faststart', 'front.mp4');
    const samples = Buffer.from('....mdat');
    samples.writeUInt32BE(2 ** 20);
    source.write(
      'back.mp4',
      Buffer.concat([samples, Buffer.alloc(2 ** 20 - 8), readFileSync(source.path('front.mp4'))]),
    );
    for (const [name, expected] of [
      ['front.mp4', 'bytes=0-65535'],
      ['back.mp4', 'bytes=0-65535 bytes=1048576-1114111'],
    ] as const) {
      source.ranges.length = 0;
      expect(await source.inspect(name), name).to.include({ width: 64 });
      // ffprobe asks without an end, and leaves earlier.
      expect(source.ranges.filter((range) => !range.endsWith('-')).join(' '), name).to.equal(expected);
    }
  });

  it('D60: in WebM whose tracks are encrypted is protected', async () => {
    await source.ffmpeg('-i', source.film, '-c:v', 'libvpx', '-c:a', 'libvorbis', '-live', '1', 'clear.webm');
    source.write('scrambled.webm', withEncryption(readFileSync(source.path('clear.webm'))));
    for (const [endpoint, args] of [
      ['video', {}],
      ['video', { max_duration: 3 }],
      ['audio', { audio_format: 'mp3' }],
    ] as const) {
      const ended = await source.make(endpoint, 'scrambled.webm', args, () => 'delivered');
      expect(ended, `${endpoint} ${JSON.stringify(args)}`).to.match(/^drm_protected/);
    }
    expect(await source.inspect('scrambled.webm')).to.match(/^drm_protected/);
    expect(await source.make('video', 'clear.webm', {}, () => 'delivered')).to.equal('delivered');
  });

  it('D60: in Windows Media whose head names an encryption is protected', async () => {
    await source.ffmpeg('-i', source.film, '-c:v', 'wmv2', '-c:a', 'wmav2', 'clear.wmv');
    const clear = readFileSync(source.path('clear.wmv'));
    // The object of extended content encryption, as the first one in the head.
    const object = Buffer.alloc(36);
    Buffer.from('14e68a292226174cb935dae07ee9289c', 'hex').copy(object);
    object.writeBigUInt64LE(BigInt(object.length), 16);
    clear.writeBigUInt64LE(clear.readBigUInt64LE(16) + BigInt(object.length), 16);
    clear.writeUInt32LE(clear.readUInt32LE(24) + 1, 24);
    source.write('scrambled.wmv', Buffer.concat([clear.subarray(0, 30), object, clear.subarray(30)]));
    for (const args of [{}, { max_duration: 3 }]) {
      const ended = await source.make('video', 'scrambled.wmv', args, () => 'delivered');
      expect(ended, JSON.stringify(args)).to.match(/^drm_protected/);
    }
    expect(await source.inspect('scrambled.wmv')).to.match(/^drm_protected/);
  });
});

/** Returns a WebM of unknown length whose tracks tell of an encryption of their samples. */
function withEncryption(film: Buffer): Buffer {
  const settings = element('47e7', element('47e8', Buffer.from([1])));
  const encryption = element('5035', element('47e1', Buffer.from([5])), element('47e2', Buffer.alloc(16, 7)), settings);
  const encoding = element('6240', element('5033', Buffer.from([1])), encryption);
  const name = Buffer.from('1654ae6b', 'hex');
  // The first one stands in a list of places.
  const at = film.indexOf(name, film.indexOf(name) + 1);
  const tracks = contentOf(film, at + 4);
  const entries: Buffer[] = [];
  for (let entry = tracks.start; entry < tracks.end; ) {
    const { start, end } = contentOf(film, entry + 1);
    entries.push(
      film[entry] === 0xae
        ? element('ae', film.subarray(start, end), element('6d80', encoding))
        : film.subarray(entry, end),
    );
    entry = end;
  }
  return Buffer.concat([film.subarray(0, at), element('1654ae6b', ...entries), film.subarray(tracks.end)]);
}

/** Returns an element of EBML whose length has eight bytes. */
function element(id: string, ...content: readonly Buffer[]): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(Buffer.concat(content).length) | (1n << 56n));
  return Buffer.concat([Buffer.from(id, 'hex'), size, ...content]);
}

/** Returns where that lies which an element of EBML holds, whose length is told at a place. */
function contentOf(film: Buffer, at: number): { readonly start: number; readonly end: number } {
  const bytes = Math.clz32(film[at] ?? 0) - 23;
  const told = [...film.subarray(at, at + bytes)].reduce((sum, byte) => sum * 256 + byte, 0);
  return { start: at + bytes, end: at + bytes + (told % 2 ** (7 * bytes)) };
}
