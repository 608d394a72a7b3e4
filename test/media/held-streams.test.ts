import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

const coded = ['-vsync', 'vfr', '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-c:a', 'aac'];
const gap = "'not(between(t,5.01,18.99))'";

describe('A transport stream', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    const made = ['-f', 'lavfi', '-t', '24', '-i', 'color=s=64x36:r=25', '-f', 'lavfi', '-t', '24', '-i', 'sine'];
    await source.ffmpeg(...made, '-vf', `select=${gap}`, ...coded, 'picture.ts');
    await source.ffmpeg(...made, '-af', `aselect=${gap}`, ...coded, '-output_ts_offset', '95430', 'sound.ts');
  });
  after(() => source.stop());
  const good = async (endpoint: 'video' | 'audio', name: string, args: object, check: (file: string) => unknown) =>
    expect(await source.make(endpoint, name, args, async ({ file }) => void (await check(file))), name).to.equal(
      undefined,
    );

  for (const [args, start, end] of [
    [{}, 0, 24],
    [{ end: 12 }, 0, 12],
    [{ start: 10, end: 22 }, 10, 22],
  ] as const) {
    it(`D32 D33: shows its pictures behind one that is held for 14 s when its sound goes on as it does ${JSON.stringify(args)}`, async () => {
      await good('video', 'picture.ts', args, async (file) => {
        expect((await look(file)).duration).to.be.closeTo(end - start, 0.1);
        const wanted = Array.from({ length: 24 * 25 }, (_, n) => n / 25)
          .filter((second) => (second < 5.01 || second > 18.99) && second >= start && second < end)
          .map((second) => second - start);
        const shown = timesOf(file, 'v').slice(start > 0 ? 1 : 0);
        expect(shown).to.have.length(wanted.length);
        for (const [n, second] of shown.entries()) expect(second).to.be.closeTo(wanted[n]!, 0.05);
      });
    });
  }

  it('D33: keeps a pause of 14 s in its sound while its picture goes on, and its clock, which has 33 bits, begins anew', async () => {
    await good('video', 'sound.ts', { end: 22 }, (file) => {
      const behind = timesOf(file, 'a').filter((second) => second > 5.2);
      expect(behind[0]).to.be.closeTo(19, 0.1);
      expect(behind.at(-1)).to.be.closeTo(22, 0.1);
      expect(timesOf(file, 'v').at(-1)).to.be.closeTo(22, 0.1);
    });
    await good('audio', 'sound.ts', {}, async (file) => expect((await look(file)).duration).to.be.closeTo(24, 0.1));
  });

  for (const [title, first, second] of [
    ['leaps ahead', 1, 100],
    ['leaps back', 100, 1],
    ['leaps ahead by a little more than ffmpeg keeps', 1, 17],
  ] as const) {
    it(`D33: is cut out in time where the clock of both of its streams ${title}`, async () => {
      const parts = [
        [0, first],
        [5, second],
      ].map(async ([begin, offset]) => {
        const [name, clock] = [`${first}-${second}-${begin}.ts`, ['-muxdelay', '0', '-output_ts_offset', `${offset}`]];
        await source.ffmpeg('-ss', `${begin}`, '-t', '5', '-i', source.film, ...coded, ...clock, name);
        return readFileSync(source.path(name));
      });
      const name = `${first}-${second}.ts`;
      source.write(name, Buffer.concat(await Promise.all(parts)));
      await good('video', name, { end: 8 }, (file) => expectMarks(file, 0, 8));
    });
  }

  it('D33: is cut out as long as it is wanted where its clock leaps by less than the part lasts', async () => {
    const clocks = ['1', '18'].map(async (offset) => {
      const loop = ['-stream_loop', '2', '-t', offset === '1' ? '5' : '20', '-i', source.film];
      await source.ffmpeg(...loop, ...coded, '-muxdelay', '0', '-output_ts_offset', offset, `clock${offset}.ts`);
      return readFileSync(source.path(`clock${offset}.ts`));
    });
    source.write('short-leap.ts', Buffer.concat(await Promise.all(clocks)));
    await good('video', 'short-leap.ts', { end: 22 }, async (file) =>
      expect((await look(file)).duration).to.be.closeTo(22, 0.2),
    );
  });
});

/** Returns the seconds at which a player shows the pictures of a file, or sounds its sound. */
function timesOf(file: string, kind: 'v' | 'a'): number[] {
  const words = ['-v', 'error', '-select_streams', kind, '-show_entries', 'frame=pts_time', '-of', 'csv=p=0', file];
  return (execFileSync('ffprobe', words, { encoding: 'utf8' }).match(/[\d.]+/g) ?? []).map(Number);
}
