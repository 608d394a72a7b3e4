import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { planConversion } from '../../src/media/plan-conversion.ts';
import type { MediaOrder } from '../../src/media/tools.ts';
import { testsAtOnce } from '../support/at-once.ts';
import { clipSeconds, longSeconds, makeFilms } from '../support/films.ts';
import { decode, look, type MadeFile, type MediaFixture, openMediaFixture } from '../support/media.ts';
import { addHeightsPage } from '../support/media-pages.ts';

const [width, height, rate] = [64, 36, 10];
const film = { download_type: 'audio_video', video_quality: '360p', video_format: 'mp4' };
const full = process.env.ROUNDS !== undefined;
/** Films of the short form. */
const short = ['a plain film', 'HLS', 'a page with separate sound', 'a WebM'];
const webm = { video_format: 'webm' };

const picture = {
  index: 0,
  number: null,
  kind: 'video' as const,
  codec: 'vp8',
  width: 2,
  height: 2,
  turned: false,
  duration: 9,
  kilobits: 1,
  frameRate: 25,
  fastestRate: 25,
  reordered: 0,
  begin: null,
};
const stream = { ...picture, sampleRate: null, channels: null, promised: 1, counted: 1 };

describe('a part of a source', () => {
  const it = testsAtOnce(2);
  let fixture: MediaFixture;
  before(async () => {
    fixture = await openMediaFixture();
    addHeightsPage(fixture.source);
  });
  after(() => fixture.stop());

  const order = (endpoint: 'video' | 'audio', path: string, args: object): MediaOrder => ({
    endpoint,
    args: { query: fixture.source.url + path, ...(endpoint === 'video' ? film : {}), ...args },
  });
  const good = (wanted: MediaOrder, check: (made: MadeFile, seen: Awaited<ReturnType<typeof look>>) => void) =>
    fixture.make(wanted, async (made) => {
      expect(made.failed === null ? '' : `${made.failed.code} ${made.failed.detail}`).to.equal('');
      const file = made.produced?.file ?? '';
      check(made, await look(file));
      expect(await decode(file)).to.equal('');
    });

  const films = [
    ['a plain film', '/films/clip.mp4', 'clip.mp4', { start: 1.3, end: 3.1 }, 1.8],
    ['a plain film to its end', '/films/clip.mp4', 'clip.mp4', { start: 1.3 }, clipSeconds - 1.3],
    ['the beginning of a film', '/films/clip.mp4', 'clip.mp4', { end: 1.5 }, 1.5],
    ['a minute', '/films/long.mp4', 'long.mp4', { start: 21.7, end: 31.7 }, 10],
    ['the end of a minute', '/films/long.mp4', 'long.mp4', { start: 50.3, end: 900 }, longSeconds - 50.3],
    ['HLS', '/films/fast/list.m3u8', 'long.mp4', { start: 20.3, end: 25.3 }, 5],
    ['HLS to its end', '/films/hls/list.m3u8', 'clip.mp4', { start: 1.3 }, clipSeconds - 1.3],
    ['DASH', '/films/dash/list.mpd', 'clip.mp4', { start: 1.1, end: 2.9 }, 1.8],
    ['a page with separate sound', '/page/heights', 'v360.mp4', { start: 1.2, end: 2.4 }, 1.2],
    ['a film whose sound an mp4 cannot hold', '/films/odd.mkv', 'clip.mp4', { start: 1.3, end: 3.1 }, 1.8],
    ['a WebM', '/films/clip.webm', 'clip.webm', { start: 1.3, end: 3.1, ...webm }, 1.8],
  ] as const;
  for (const [name, path, like, args, seconds] of full ? films : films.filter(([name]) => short.includes(name))) {
    it(`D30 D92: ${name} ${JSON.stringify(args)} begins and ends within 0.5 s of what was wanted`, () =>
      good(order('video', path, args), ({ produced }, seen) => {
        expect(seen.duration).to.be.closeTo(seconds, 0.5);
        for (const stream of seen.streams) expect(stream.duration ?? seconds).to.be.closeTo(seconds, 0.5);
        expect(produced?.metadata.duration).to.be.closeTo(seconds, 0.5);
        const begun = 'start' in args ? args.start : 0;
        if (begun > 0) expect(produced?.ext).to.equal('mp4');
        const [first, last] = placesIn(join(makeFilms(), like), produced?.file ?? '');
        expect(first).to.be.closeTo(begun, 0.5);
        expect(last).to.be.closeTo(begun + seconds, 0.5);
      }));
  }

  for (const [args, most, ext] of [
    [{ start: 12, end: 45.3 }, 33.8, 'mp4'],
    [{ end: 0.5, video_format: 'webm' }, 1, 'mp4'],
    [{ max_duration: 33, video_format: 'mkv' }, 35, 'mkv'],
  ] as const) {
    it(`D92: of a film with a picture every ten seconds, ${JSON.stringify(args)} lasts as long as was wanted`, () =>
      good(order('video', '/films/hour720.mp4', args), ({ produced }, seen) => {
        expect(seen.duration).to.be.within(most / 2, most);
        expect(produced?.ext).to.equal(ext);
      }));
  }

  for (const [path, format] of [
    ['/films/audio.mp3', 'mp3'],
    ['/films/audio.m4a', 'm4a'],
    ['/films/audio.m4a', 'wav'],
    ['/films/hls/list.m3u8', 'm4a'],
  ] as const) {
    if (!full && format !== 'mp3') continue;
    it(`cuts the sound of ${path} for ${format}`, () =>
      good(order('audio', path, { audio_format: format, audio_quality: 'best', start: 1.3, end: 2.7 }), (_, seen) =>
        expect(seen.duration).to.be.closeTo(1.4, 0.1),
      ));
  }

  for (const args of [{ max_duration: 1e-7 }, { start: 1e-7, end: 2e-7 }, { start: 1.3, end: 1.301 }]) {
    for (const endpoint of ['video', 'audio'] as const) {
      it(`D31: a part shorter than a frame, ${JSON.stringify(args)}, is a file of a tenth of a second (${endpoint})`, () =>
        good(order(endpoint, '/films/clip.mp4', args), (_, seen) => expect(seen.duration).to.be.within(0.05, 0.3)));
    }
  }

  for (const [name, seconds] of [
    ['audio.mp3', clipSeconds],
    ['long.mp4', longSeconds],
  ] as const) {
    it(`D33: the beginning of ${name} is fetched again when the connection breaks off and no page tells how long it lasts`, () =>
      good(order('audio', `/torn/whole/${name}`, { audio_format: 'wav', max_duration: 600 }), (_, seen) =>
        expect(seen.duration).to.be.closeTo(seconds, 0.2),
      ));
  }

  it('encodes the picture only when mp4 cannot hold it', () => {
    const planned = (codec: string, start: number) => {
      const video = { ...stream, codec };
      const probe = { format: 'matroska,webm', brand: '', duration: 9, begin: 0, streams: [video], video, audio: null };
      const fetched = [
        { file: 'part0', probe, ended: { code: 0, signal: null, stderr: '' }, count: 'shown' as const, plain: true },
      ];
      const part = { id: 'a', name: 'part0', video: true, audio: false, bytes: null, fragmented: false };
      const choice = { parts: [part], start, seconds: null, section: false, expected: null };
      const { output } = planConversion(fetched, choice, { endpoint: 'video', args: { video_format: 'webm' } });
      return [/libx264/.test(output?.join(' ') ?? ''), output?.at(-1)];
    };
    expect(planned('vp8', 0)).to.deep.equal([false, 'webm']);
    expect(planned('vp8', 2)).to.deep.equal([true, 'mp4']);
    expect(planned('vp9', 2)).to.deep.equal([false, 'mp4']);
    expect(() => planned('vp9', 9)).to.throw('This content ends before the wanted start');
  });

  it('a start behind the end is found in a file whose clock begins late, although ffprobe tells its end by that clock', () => {
    const plan = (start: number) => {
      const probe = {
        format: 'mov,mp4',
        brand: '',
        duration: 3610,
        begin: 3600,
        streams: [stream],
        video: stream,
        audio: null,
      };
      const fetched = [
        { file: 'part0', probe, ended: { code: 0, signal: null, stderr: '' }, count: 'shown' as const, plain: true },
      ];
      const part = { id: 'a', name: 'part0', video: true, audio: false, bytes: null, fragmented: true };
      const choice = { parts: [part], start, seconds: null, section: false, expected: null };
      return planConversion(fetched, choice, { endpoint: 'video', args: {} });
    };
    expect(plan(9.5).starts).to.deep.equal([9.5]);
    expect(() => plan(10)).to.throw('This content ends before the wanted start');
  });

  for (const path of ['/films/clip.mp4', '/films/audio.mp3']) {
    it(`refuses a start behind the end of ${path}`, () =>
      fixture.make(order('video', path, { download_type: 'audio', start: 5 }), ({ failed }) =>
        expect(failed?.code).to.equal('start_beyond_end'),
      ));
  }
});

/** Seconds of a film at which it looks most like the first and the last picture of a file. */
function placesIn(source: string, file: string): [first: number, last: number] {
  const [whole, part] = [picturesOf(source), picturesOf(file)];
  const placeOf = (picture: Buffer) => {
    const distances = whole.map((one) => one.reduce((sum, value, n) => sum + Math.abs(value - picture[n]!), 0));
    return distances.indexOf(Math.min(...distances)) / rate;
  };
  return [placeOf(part[0]!), placeOf(part.at(-1)!)];
}

function picturesOf(file: string): Buffer[] {
  const shape = ['-vf', `fps=${rate},scale=${width}:${height}`, '-pix_fmt', 'gray', '-f', 'rawvideo', '-'];
  const bytes = execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-i', file, ...shape], { maxBuffer: 2 ** 26 });
  const size = width * height;
  return Array.from({ length: bytes.length / size }, (_, n) => bytes.subarray(n * size, (n + 1) * size));
}
