import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Flashes, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

describe('A link to an odd picture', () => {
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
  });
  after(() => source.stop());

  it('D62: which stands still or is an animated WebP is unsupported, and no film', async () => {
    const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=5'];
    await source.ffmpeg(...picture, '-frames:v', '1', '-c:v', 'libaom-av1', '-still-picture', '1', 'still.avif');
    await source.ffmpeg(...picture, '-frames:v', '5', 'moving.webp');
    await source.ffmpeg(...picture, '-frames:v', '5', 'moving.gif');
    for (const name of ['still.avif', 'moving.webp', 'moving.gif']) {
      expect(await source.make('video', name, {}, () => 'a file'), name).to.match(/^unsupported_url/);
      expect(await source.inspect(name), name).to.match(/^unsupported_url/);
    }
  });

  it('D62: in a codec that ffmpeg does not know is unsupported, and no film', async () => {
    const film = readFileSync(source.path(source.film));
    for (let at = film.indexOf('avc1'); at > 0; at = film.indexOf('avc1', at)) film.write('xyz1', at);
    source.write('unknown.mp4', film);
    await source.ffmpeg('-i', source.film, '-c', 'copy', 'known.mkv');
    const silent = readFileSync(source.path('known.mkv'));
    silent.write('A_XXX', silent.indexOf('A_AAC'));
    source.write('silent.mkv', silent);
    for (const args of [{ video_format: 'mp4' }, { video_format: 'mkv' }, { start: 3 }])
      for (const name of ['unknown.mp4', 'silent.mkv'])
        expect(await source.make('video', name, args, () => 'a file'), name).to.match(/^unsupported_url/);
    expect(await source.make('audio', 'silent.mkv', {}, () => 'a file')).to.match(/^unsupported_url/);
    expect(await source.make('audio', 'unknown.mp4', {}, () => 'a file')).to.equal('a file');
  });

  it('D33: is delivered with its sound of a known codec, where the one that it marks as the default one has another', async () => {
    const both = ['-map', '0', '-map', '0:a', '-c:v', 'copy', '-c:a:0', 'aac', '-c:a:1', 'ac3'];
    await source.ffmpeg('-i', source.film, ...both, '-disposition:a:0', 'default', 'both.mkv');
    const film = readFileSync(source.path('both.mkv'));
    film.write('A_XXX', film.indexOf('A_AAC'));
    source.write('both.mkv', film);
    const codec = await source.make('video', 'both.mkv', {}, async ({ file }) => (await look(file)).audio?.codec);
    expect(codec).to.equal('ac3');
  });

  it('D32: in Dolby Vision keeps what its players must know of it', async () => {
    const coded = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none', '-tag:v', 'hvc1'];
    await source.ffmpeg('-t', '3', '-i', source.film, ...coded, '-movflags', '+faststart', 'plain.mp4');
    source.write('vision.mp4', withVision(readFileSync(source.path('plain.mp4'))));
    // A remux, as a title makes it necessary.
    const titled = ['-strict', 'unofficial', '-metadata', 'title=x'];
    await source.ffmpeg('-i', 'vision.mp4', '-c', 'copy', ...titled, 'titled.mp4');
    for (const args of [{ video_format: 'mp4' }, { video_format: 'mkv' }, { start: 1 }]) {
      const profile = await source.make('video', 'titled.mp4', args, ({ file }) => {
        const words = ['-v', 'error', '-select_streams', 'v', '-show_entries', 'stream_side_data=dv_profile'];
        return execFileSync('ffprobe', [...words, '-of', 'csv=p=0', file], { encoding: 'utf8' }).trim();
      });
      expect(profile, JSON.stringify(args)).to.equal('5');
    }
  });

  it('D32: with the lines of two moments in each picture, as in broadcasting, has those of one where it is encoded', async () => {
    const moving = ['-f', 'lavfi', '-t', '4', '-i', 'testsrc2=s=192x144:r=50', '-vf', 'interlace'];
    await source.ffmpeg(...moving, '-c:v', 'mpeg2video', '-flags', '+ildct+ilme', '-q:v', '2', 'interlaced.mpg');
    const counts = await source.make('video', 'interlaced.mpg', { start: 1 }, async ({ file }) => {
      expect((await look(file)).video?.codec).to.equal('h264');
      expect((await look(file)).duration).to.be.closeTo(3, 0.1);
      const words = ['-nostdin', '-v', 'info', '-i', file, '-vf', 'idet', '-f', 'null', '-'];
      const text = execFileSync('sh', ['-c', 'ffmpeg "$@" 2>&1', 'sh', ...words], { encoding: 'utf8' });
      return /Multi frame detection: TFF: *(\d+) BFF: *(\d+) Progressive: *(\d+)/.exec(text)?.slice(1).map(Number);
    });
    const [upper, lower, whole] = counts as number[];
    expect(whole).to.be.above(50);
    expect(upper! + lower!).to.be.below(10);
  });

  it('D32: of two columns or two lines is encoded too', async () => {
    for (const size of ['2x64', '64x2']) {
      const moving = ['-f', 'lavfi', '-t', '2', '-i', `testsrc2=s=${size}`, '-c:v', 'libvpx', '-deadline', 'realtime'];
      await source.ffmpeg(...moving, `${size}.webm`);
      const args = { download_type: 'video', start: 1 };
      const codec = await source.make(
        'video',
        `${size}.webm`,
        args,
        async ({ file }) => (await look(file)).video?.codec,
      );
      expect(codec, size).to.equal('h264');
    }
  });

  it('D32: with transparent places is still so in a webm and a mkv', async () => {
    const coded = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8'];
    const clear = ['-vf', 'format=yuva420p', ...coded, '-c:a', 'libopus'];
    await source.ffmpeg('-t', '2', '-i', source.film, ...clear, 'clear.webm');
    for (const args of [{ video_format: 'webm' }, { video_format: 'mkv' }, { video_format: 'webm', end: 0.9 }]) {
      const tag = await source.make('video', 'clear.webm', args, ({ file }) => {
        const words = ['-v', 'error', '-select_streams', 'v', '-show_entries', 'stream_tags=alpha_mode'];
        return execFileSync('ffprobe', [...words, '-of', 'csv=p=0', file], { encoding: 'utf8' }).trim();
      });
      expect(tag, JSON.stringify(args)).to.equal('1');
    }
    const plain = await source.make('video', 'clear.webm', { video_format: 'mp4' }, ({ metadata }) => metadata.ext);
    expect(plain).to.equal('mp4');
  });
});

/** Returns an mp4 in HEVC, whose index lies in front, with the configuration of Dolby Vision of profile 5. */
function withVision(film: Buffer): Buffer {
  const box = Buffer.concat([
    Buffer.from([0, 0, 0, 32]),
    Buffer.from('dvcC'),
    Buffer.from([1, 0, 10, 29]),
    Buffer.alloc(20),
  ]);
  const names = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', 'hvc1'];
  const places = names.map((name) => film.indexOf(name) - 4);
  for (const place of places) film.writeUInt32BE(film.readUInt32BE(place) + box.length, place);
  const last = places.at(-1)!;
  const end = last + film.readUInt32BE(last) - box.length;
  for (let at = film.indexOf('stco'); at > 0; at = film.indexOf('stco', at + 4)) {
    for (let n = 0; n < film.readUInt32BE(at + 8); n += 1) {
      const place = at + 12 + 4 * n;
      film.writeUInt32BE(film.readUInt32BE(place) + box.length, place);
    }
  }
  return Buffer.concat([film.subarray(0, end), box, film.subarray(end)]);
}
