import { expect } from 'chai';
import { testsAtOnce } from '../support/at-once.ts';
import { look, type MediaFixture, openMediaFixture } from '../support/media.ts';
import { anyFilm, makeMediaCalls } from '../support/media-calls.ts';

describe('A source that takes its time', () => {
  const it = testsAtOnce(6);
  let fixture: MediaFixture;
  before(async () => {
    fixture = await openMediaFixture();
  });
  after(() => fixture.stop());
  const { order, sound, good, fails } = makeMediaCalls(() => fixture);

  it('an endless body ends at the size limit, and the disk holds little more', () =>
    fails(order('/endless'), 'file_too_large', { fileBytes: 3e7 }));

  it('a body of one byte a second ends as too slow', () =>
    fails(order('/rate/1/clip.mp4'), 'too_slow', { slowSeconds: 2 }));

  it('the beginning of a source of unknown length is fetched however slowly the source sends it, as a radio does', () =>
    good(
      // Takes 10 s at least, so that the limit is reached.
      sound('/rate/7000/audio.mp3', { max_duration: 3 }),
      (_, seen) => expect(seen.duration).to.be.closeTo(3, 0.2),
      { slowBytes: 1e6, slowSeconds: 9 },
    ));

  it('a body that stands still ends as too slow', () => fails(order('/hang'), 'too_slow', { slowSeconds: 2 }));

  it('a page that never answers ends as a timeout', () => fails(order('/silence'), 'timeout', { inspectSeconds: 2 }));

  it('D65: a live stream is recorded in real time', async () => {
    const live = await openMediaFixture();
    const query = live.source.addPage('live', {
      info: {
        is_live: true,
        formats: [{ format_id: 'x', url: `${live.source.url}/live/list.m3u8`, ext: 'mp4', protocol: 'm3u8_native' }],
      },
    });
    const list = await (await fetch(`${live.source.url}/live/list.m3u8`)).text();
    const listed = Math.max(...[...list.matchAll(/^(\d+)\.ts$/gm)].map(([, piece]) => Number(piece)));
    await live.make(
      { endpoint: 'video', args: { ...anyFilm, query, max_duration: 8 } },
      async ({ produced, failed, seconds }) => {
        expect(failed?.detail ?? '').to.equal('');
        expect((await look(produced?.file ?? '')).duration).to.be.closeTo(8, 3);
        // Three pieces of two seconds are told at once; the others come by the clock.
        expect(seconds).to.be.at.least(2);
        expect(produced?.metadata.live_status).to.equal('is_live');
        const pieces = live.source.asked.flatMap((path) => /^\/live\/(\d+)\.ts$/.exec(path)?.[1] ?? []).map(Number);
        // The stream tells three pieces: what it shows now is the last of them.
        expect(pieces[0]).to.be.at.least(listed);
      },
    );
    await live.stop();
  });
});
