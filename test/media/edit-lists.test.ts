import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { type Flashes, marks, marksOf, openFlashes } from '../support/flashes.ts';
import { durationOf } from '../support/media.ts';

/** Parts of the film that the edited one shows, in seconds: neither begins with a key frame. */
const shown = [
  [0, 2],
  [5, 9],
] as const;

describe('An MP4 whose edit list leaves something out', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    await source.ffmpeg('-i', source.film, '-c', 'copy', 'whole.mp4');
    const film = readFileSync(source.path('whole.mp4'));
    source.write('edited.mp4', withEdits(film, shown));
    source.write('shorter.mp4', withEdits(film, [[0, 6]]));
  });
  after(() => source.stop());

  for (const [endpoint, args, from, to] of [
    ['video', {}, 0, 6],
    ['video', { start: 1, end: 5 }, 1, 5],
    ['video', { max_duration: 4, video_format: 'mkv' }, 0, 4],
    ['audio', { max_duration: 4, audio_format: 'm4a' }, 0, 4],
  ] as const) {
    it(`D33: of its middle shows and sounds as players do (${endpoint}, ${JSON.stringify(args)})`, async () => {
      const places = marks.flatMap((mark) => [
        ...(mark < 2 ? [mark] : []),
        ...(mark >= 5 && mark < 9 ? [mark - 3] : []),
      ]);
      const wanted = places.filter((place) => place > from && place < to).map((place) => place - from);
      const seen = await source.make(endpoint, 'edited.mp4', args, ({ file }) => marksOf(file));
      const { flashes, beeps } = typeof seen === 'string' ? expect.fail(seen) : seen;
      for (const found of endpoint === 'audio' ? [beeps] : [flashes, beeps]) {
        expect(found).to.have.lengthOf(wanted.length);
        for (const [n, second] of found.entries()) expect(second).to.be.closeTo(wanted[n]!, 0.12);
      }
    });
  }

  for (const [start, seconds] of [
    [0, 6],
    [1, 5],
  ] as const) {
    it(`D33: of its end is copied without that end, which a copy would have up to its next key frame (from ${start} s on)`, async () => {
      const lasts = await source.make('video', 'shorter.mp4', { start }, ({ file }) => durationOf(file));
      expect(lasts).to.be.closeTo(seconds, 0.3);
    });
  }
});

/** Gives the tracks of a film of ffmpeg, whose index lies at its end, an edit for each part that is shown. */
function withEdits(whole: Buffer, parts: readonly (readonly [number, number])[]): Buffer {
  let film = Buffer.from(whole);
  const more = 12 * (parts.length - 1);
  let at = film.indexOf('elst');
  while (at >= 0) {
    const ticks = film.readUInt32BE(film.indexOf('mdhd', at) + 16);
    const begin = film.readInt32BE(at + 16);
    const edits = parts.flatMap(([from, to]) => [(to - from) * 1000, begin + from * ticks, 0x10000]);
    const list = Buffer.alloc(4 + 4 * edits.length);
    for (const [n, value] of [parts.length, ...edits].entries()) list.writeUInt32BE(value, 4 * n);
    for (const start of [at, at - 8, film.lastIndexOf('trak', at), film.indexOf('moov')])
      film.writeUInt32BE(film.readUInt32BE(start - 4) + more, start - 4);
    film = Buffer.concat([film.subarray(0, at + 8), list, film.subarray(at + 24)]);
    at = film.indexOf('elst', at + 4);
  }
  return film;
}
