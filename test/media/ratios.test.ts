import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { ffmpegArguments } from '../../src/media/ffmpeg-arguments.ts';
import type { MediaOrder } from '../../src/media/tools.ts';
import { longSeconds, makeFilms } from '../support/films.ts';
import { type MediaFixture, openMediaFixture, python } from '../support/media.ts';
import { aFolder } from '../support/redis.ts';

/** The programs that measure both sides of a ratio, in this one run. */
// Ratios are judged where little else runs: in the long form of the suite.
if (process.env.ROUNDS !== undefined)
  describe('Speed compared with the plain way', () => {
    let fixture: MediaFixture;
    before(async () => {
      fixture = await openMediaFixture();
    });
    after(() => fixture.stop());

    const produceIn = async (path: string, args = {}) => {
      fixture.source.forget();
      const order: MediaOrder = {
        endpoint: 'video',
        args: {
          query: fixture.source.url + path,
          download_type: 'audio_video',
          video_quality: 'best',
          video_format: 'mp4',
          ...args,
        },
      };
      const seconds = await fixture.make(order, ({ failed, seconds }) => {
        expect(failed?.detail ?? '').to.equal('');
        return seconds;
      });
      return { seconds, bytes: fixture.source.sent() };
    };
    /** The yt-dlp command alone, in a process of its own: the source must answer meanwhile. */
    const commandIn = async (path: string, ...words: string[]) => {
      const { folder, remove } = aFolder();
      fixture.source.forget();
      const { spawn } = await import('node:child_process');
      const all = [
        '-m',
        'yt_dlp',
        '--ignore-config',
        '--proxy',
        fixture.proxy.url,
        '-q',
        '-o',
        join(folder, 'x.%(ext)s'),
        ...words,
        fixture.source.url + path,
      ];
      const begun = performance.now();
      const code = await new Promise((resolve) => spawn(python, all, { stdio: 'ignore' }).on('exit', resolve));
      const seconds = (performance.now() - begun) / 1000;
      remove();
      expect(code).to.equal(0);
      return { seconds, bytes: fixture.source.sent() };
    };
    const show = (what: string, ratio: number) => console.log(`      ${what}: ${ratio.toFixed(3)}`);

    it('the first sixth of a film takes at most 0.25 of the bytes and 0.4 of the time of the whole', async () => {
      const path = '/rate/1500000/long.mp4';
      const whole = await produceIn(path);
      const part = await produceIn(path, { max_duration: longSeconds / 6 });
      show('bytes', part.bytes / whole.bytes);
      show('time', part.seconds / whole.seconds);
      expect(part.bytes / whole.bytes).to.be.at.most(0.25);
      expect(part.seconds / whole.seconds).to.be.at.most(0.4);
    });

    it('parallel fragments arrive at least 3 times as fast as sequential ones from a throttled source', async () => {
      const path = '/rate/450000/fast/list.m3u8';
      const alone = await commandIn(path, '-N', '1', '--fixup', 'never');
      const ours = await produceIn(path);
      show('speed', alone.seconds / ours.seconds);
      expect(alone.seconds / ours.seconds).to.be.at.least(3);
    });

    it('a remux takes at most 0.02 of the time of an encoding', () => {
      const { folder, remove } = aFolder();
      const time = (output: string[], file: string) => {
        const begun = performance.now();
        execFileSync('ffmpeg', ffmpegArguments([{ file: join(makeFilms(), 'long.mp4') }], output, join(folder, file)), {
          stdio: 'ignore',
        });
        return performance.now() - begun;
      };
      const copied = Math.min(...[1, 2, 3].map((n) => time(['-c', 'copy', '-f', 'matroska'], `${n}.mkv`)));
      const encoded = time(['-c:v', 'libx264', '-preset', 'fast', '-c:a', 'copy', '-f', 'matroska'], 'encoded.mkv');
      remove();
      show('time', copied / encoded);
      expect(copied / encoded).to.be.at.most(0.02);
    });

    it('a whole small job takes at most 1.5 times as long as the yt-dlp command alone', async () => {
      const ours: number[] = [];
      const alone: number[] = [];
      for (let round = 0; round < 3; round += 1) {
        alone.push((await commandIn('/films/clip.mp4')).seconds);
        ours.push((await produceIn('/films/clip.mp4')).seconds);
      }
      const median = (all: number[]) => all.sort((one, other) => one - other)[1] ?? 0;
      show('time', median(ours) / median(alone));
      expect(median(ours) / median(alone)).to.be.at.most(1.5);
    });
  });
