import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';

describe('A film by Smooth Streaming', () => {
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    // A window of zero pieces keeps all of them.
    const kept = ['-window_size', '0', '-extra_window_size', '100'];
    await source.ffmpeg('-i', source.film, '-c', 'copy', '-f', 'smoothstreaming', ...kept, 'film.ism');
    // ffmpeg writes no time of the first pieces, which begin later than at zero.
    const pieces = readdirSync(source.path('film.ism'), { recursive: true, encoding: 'utf8' });
    const firstOf = (kind: string) =>
      Math.min(...pieces.map((each) => Number(each.split(`/Fragments(${kind}=`)[1]?.slice(0, -1) ?? Infinity)));
    const manifest = readFileSync(source.path('film.ism/Manifest'), 'utf8')
      .replace('<c n="0"', `<c n="0" t="${firstOf('video')}"`)
      .replace('<c n="0" d', `<c n="0" t="${firstOf('audio')}" d`);
    source.write('film.ism/Manifest', manifest);
  });
  after(() => source.stop());

  for (const [endpoint, args] of [
    ['video', {}],
    ['video', { download_type: 'audio', video_format: 'mp4' }],
    ['audio', { audio_format: 'm4a' }],
  ] as const) {
    it(`D33: has the configuration of its AAC, without which browsers play no sound (${endpoint}, ${JSON.stringify(args)})`, async () => {
      const profile = await source.make(endpoint, 'film.ism/Manifest', args, async ({ file }) => {
        if (!('download_type' in args) && endpoint === 'video') await expectMarks(file);
        const words = ['-v', 'error', '-select_streams', 'a', '-show_entries', 'stream=profile', '-of', 'csv=p=0'];
        return execFileSync('ffprobe', [...words, file], { encoding: 'utf8' }).trim();
      });
      expect(profile).to.equal('LC');
    });
  }
});
