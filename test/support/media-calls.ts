import { expect } from 'chai';
import type { MediaLimits, MediaOrder } from '../../src/media/tools.ts';
import { decode, look, type MadeFile, type MediaFixture } from './media.ts';

export const anyFilm = { download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' };
const anySound = { download_type: 'audio', audio_quality: 'best', audio_format: 'mp3' };

/** Returns orders of what a fixture serves, and ways to judge what is made of them. */
export function makeMediaCalls(fixtureOf: () => MediaFixture) {
  return {
    order: (path: string, args = {}): MediaOrder => ({
      endpoint: 'video',
      args: { query: fixtureOf().source.url + path, ...anyFilm, ...args },
    }),
    sound: (path: string, args = {}): MediaOrder => ({
      endpoint: 'audio',
      args: { query: fixtureOf().source.url + path, ...anySound, ...args },
    }),
    /** Expects a file that ffmpeg decodes without a word. */
    good: (
      wanted: MediaOrder,
      check: (made: MadeFile, seen: Awaited<ReturnType<typeof look>>) => void,
      limits?: Partial<MediaLimits>,
    ) =>
      fixtureOf().make(
        wanted,
        async (made) => {
          expect(made.failed === null ? '' : `${made.failed.code} ${made.failed.detail}`).to.equal('');
          const file = made.produced?.file ?? '';
          check(made, await look(file));
          expect(await decode(file)).to.equal('');
        },
        limits,
      ),
    /** Expects a failure with this code and a sentence. */
    fails: (wanted: MediaOrder, code: string, limits?: Partial<MediaLimits>) =>
      fixtureOf().make(
        wanted,
        ({ failed, produced }) => {
          expect(produced).to.equal(null);
          expect(`${failed?.code} | ${failed?.code === code ? '' : failed?.detail}`).to.equal(`${code} | `);
          expect(failed?.message).to.match(/^[A-Z][^|<>/]{10,160}$/);
        },
        limits,
      ),
  };
}
