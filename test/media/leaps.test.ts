import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { expectMarks, type Flashes, openFlashes } from '../support/flashes.ts';
import { look } from '../support/media.ts';

const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-c:a', 'aac'];

describe('A stream of MPEG-TS', function () {
  this.timeout(60_000);
  const it = testsAtOnce(2);
  let source: Flashes;
  before(async () => {
    source = await openFlashes();
    source.ffmpeg('-t', '5', '-i', source.film, ...coded, '-output_ts_offset', '1', '-muxdelay', '0', 'first.ts');
  });
  after(() => source.stop());
  const good = async (name: string, args: { start?: number; end?: number }) => {
    const ended = await source.make('video', name, args, ({ file }) => expectMarks(file, args.start, args.end));
    expect(ended, name).to.equal(undefined);
  };

  for (const [title, seconds, all] of [
    ['a second', 1, [{}]],
    ['less than ten seconds', 9, [{}, { start: 3, end: 8 }]],
    ['more than ten seconds, which ffmpeg joins by itself', 15, [{}]],
  ] as const) {
    it(`D33: is delivered whole by HLS when its clock leaps ahead at a discontinuity by ${title}`, async () => {
      const [list, name] = [`leap${seconds}.m3u8`, `leap${seconds}.ts`];
      const clock = ['-output_ts_offset', String(6 + seconds), '-muxdelay', '0'];
      source.ffmpeg('-ss', '5', '-i', source.film, ...coded, ...clock, name);
      const parts = ['first.ts', name].map((part) => `#EXTINF:5,\n${part}\n`);
      source.write(list, `#EXTM3U\n#EXT-X-TARGETDURATION:5\n${parts.join('#EXT-X-DISCONTINUITY\n')}#EXT-X-ENDLIST\n`);
      for (const args of all) await good(list, args);
      const length = await source.make('audio', list, { audio_format: 'mp3' }, ({ file }) => look(file).duration);
      expect(length).to.be.closeTo(10, 0.2);
    });
  }
});
