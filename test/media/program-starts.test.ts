import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { layWrappers } from '../../src/media/ffmpeg-arguments.ts';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { produce } from '../../src/media/produce-file.ts';
import { aTools, type MediaFixture, openMediaFixture } from '../support/media.ts';
import { anyFilm } from '../support/media-calls.ts';
import { addHeightsPage } from '../support/media-pages.ts';
import { aFolder } from '../support/redis.ts';

const sound = { download_type: 'audio', audio_quality: 'best' };

// Each start loads some 200 libraries, which takes more CPU than to read a short film.
describe('ffprobe and ffmpeg are started no more often than needed', () => {
  let fixture: MediaFixture;
  before(async () => {
    fixture = await openMediaFixture();
    addHeightsPage(fixture.source);
  });
  after(() => fixture.stop());

  for (const [what, endpoint, path, args, starts] of [
    ['an mp4 that needs no change', 'video', '/films/clip.mp4', anyFilm, 'ffprobe'],
    ['an mp4 whose index lies at its end', 'video', '/films/tail.mp4', anyFilm, 'ffprobe ffmpeg ffprobe'],
    ['a picture and its sound', 'video', '/page/heights', anyFilm, 'ffprobe ffprobe ffmpeg ffprobe'],
    ['an mp3 of an mp4', 'audio', '/films/clip.mp4', { ...sound, audio_format: 'mp3' }, 'ffprobe ffmpeg ffprobe'],
    ['an m4a of an mp4', 'audio', '/films/clip.mp4', { ...sound, audio_format: 'm4a' }, 'ffprobe ffmpeg ffprobe'],
    // The driver asks for the turn of the picture and fetches, then the sizes of all pictures are compared.
    [
      'the beginning of an mp4',
      'video',
      '/films/long.mp4',
      { ...anyFilm, max_duration: 3 },
      'ffprobe ffmpeg ffprobe ffmpeg ffmpeg ffprobe',
    ],
    ['the metadata of an mp4', 'metadata', '/films/clip.mp4', {}, 'ffprobe'],
  ] as const) {
    it(`${what}: ${starts}`, async () => {
      const { folder, remove } = aFolder();
      try {
        const log = join(folder, 'starts');
        writeFileSync(log, '');
        const logged = (program: string) => {
          const file = join(folder, basename(program));
          const text = `#!/bin/sh\necho ${basename(program)} >> ${log}\nexec ${program} "$@"\n`;
          writeFileSync(file, text, { mode: 0o755 });
          return file;
        };
        const tools = aTools(folder, fixture.proxy.url);
        const programs = { ffmpeg: logged(tools.ffmpeg), ffprobe: logged(tools.ffprobe) };
        const counted = { ...tools, ...programs, wrappers: layWrappers(join(folder, 'counted'), programs) };
        const order = { endpoint, args: { query: fixture.source.url + path, ...args } };
        const { signal } = new AbortController();
        if (endpoint === 'metadata') await inspectUrl(order, counted, signal);
        else await produce(order, counted, () => undefined, signal);
        expect(readFileSync(log, 'utf8').trim().split('\n').join(' ')).to.equal(starts);
      } finally {
        remove();
      }
    });
  }
});
