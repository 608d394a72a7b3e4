import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { contentTypes } from '../../src/model/content-types.ts';
import { hourSeconds, manySegments } from '../support/films.ts';
import { type MediaFixture, openMediaFixture } from '../support/media.ts';
import { makeMediaCalls } from '../support/media-calls.ts';
import { addHeightsPage, addHourPage, addPortraitPage, soundFormats } from '../support/media-pages.ts';

const full = process.env.ROUNDS !== undefined;

describe('From a URL to a proved file', () => {
  let fixture: MediaFixture;
  before(async () => {
    fixture = await openMediaFixture();
    addHeightsPage(fixture.source);
    addHourPage(fixture.source);
    addPortraitPage(fixture.source);
  });
  after(() => fixture.stop());
  const { order, sound, good, fails } = makeMediaCalls(() => fixture);

  it('D33: returns size, checksum and content type of the file, and its progress never falls', () =>
    good(order('/rate/150000/clip.mp4'), ({ produced, told, folder }) => {
      const bytes = readFileSync(produced?.file ?? '');
      expect(produced).to.deep.include({ bytes: bytes.length, content_type: 'video/mp4', ext: 'mp4' });
      expect(produced?.sha256).to.equal(createHash('sha256').update(bytes).digest('hex'));
      expect(produced?.file).to.equal(join(folder, 'media.mp4'));
      const steps = told.map(({ progress }) => progress);
      expect(steps).to.deep.equal([...steps].sort((one, other) => one - other));
      expect(steps.at(-1)).to.equal(90);
      expect(new Set(steps).size).to.be.at.least(6);
      expect([...new Set(told.map(({ stage }) => stage))]).to.deep.equal(['inspect', 'fetch', 'convert', 'prove']);
      expect(
        told.some(({ speed_bytes }) => speed_bytes !== null && speed_bytes > 50_000 && speed_bytes < 300_000),
      ).to.equal(true);
      expect(contentTypes).to.include(produced?.content_type);
    }));

  it('video-hour limit-hour: delivers a film of more than an hour with 720 lines', () =>
    good(order('/page/hour', { video_quality: '1080p' }), (_, seen) => {
      expect([seen.video?.height, seen.duration]).to.deep.equal([720, hourSeconds]);
    }));

  it('delivers more than 720 lines when a long film is cut to less than an hour', () =>
    good(order('/page/hour', { max_duration: 100 }), (_, seen) => expect(seen.video?.height).to.equal(1080)));

  it('applies the quality to the shorter side of an upright film', () =>
    good(order('/page/portrait', { video_quality: '720p' }), (_, seen) => {
      expect([seen.video?.width, seen.video?.height]).to.deep.equal([720, 1280]);
    }));

  it('delivers a film without sound unchanged', () =>
    good(order('/films/silent.mp4'), (_, seen) =>
      expect(seen.streams.map(({ kind }) => kind)).to.deep.equal(['video']),
    ));

  it('D32: encodes only the sound when an mp4 cannot hold it', () =>
    good(order('/films/odd.mkv'), ({ produced }, seen) => {
      expect([produced?.ext, seen.video?.codec, seen.audio?.codec]).to.deep.equal(['mp4', 'h264', 'aac']);
    }));

  it('D63: copies an mp3 and leaves its cover out', () =>
    good(sound('/films/cover.mp3'), (_, seen) => {
      expect(seen.streams.map(({ kind, codec }) => `${kind} ${codec}`)).to.deep.equal(['audio mp3']);
      expect(seen.audio?.kilobits).to.be.closeTo(192, 5);
    }));

  it('downloads the only entry of a playlist', () => {
    const entries = [`${fixture.source.url}/page/heights`];
    fixture.source.addPage('list-of-one', { entries });
    return good(order('/page/list-of-one', { video_quality: '360p' }), (_, seen) =>
      expect(seen.video?.height).to.equal(360),
    );
  });

  it('delivers the film of a page with a title of 3 MiB, more than a line of the driver may have, with the title shortened', () =>
    good(order('/title'), ({ produced }, seen) => {
      expect(produced?.metadata.title).to.equal('a'.repeat(10_000));
      expect(seen.video?.height).to.equal(360);
    }));

  const many = (title: string, test: () => Promise<unknown>) => (full ? it(title, test) : undefined);
  many(`fetches a film in ${manySegments} pieces`, () => {
    return good(order('/films/many/list.m3u8'), (_, seen) => expect(seen.duration).to.be.closeTo(manySegments / 5, 1));
  });

  for (const [name, path, seconds] of [
    ['a plain film', '/films/long.mp4', 10],
    ['more than half of a film', '/films/clip.mp4', 3.2],
    ['HLS', '/films/fast/list.m3u8', 10],
    ['DASH', '/films/dash/list.mpd', 1.5],
    ['a page with separate sound', '/page/heights', 1.2],
  ] as const) {
    it(`video-max_duration audio-max_duration D31: cuts ${name} to ${seconds} s`, () =>
      good(order(path, { max_duration: seconds }), ({ produced }, seen) => {
        expect(seen.duration).to.be.closeTo(seconds, 0.5);
        for (const stream of seen.streams) expect(stream.duration).to.be.closeTo(seconds, 0.5);
        expect(produced?.metadata.duration).to.be.closeTo(seconds, 0.5);
      }));
  }

  it('audio-max_duration: does not cut a source that is shorter than max_duration', () =>
    good(sound('/films/audio.m4a', { max_duration: 100, audio_format: 'm4a' }), (_, seen) =>
      expect(seen.duration).to.be.closeTo(4, 0.1),
    ));

  for (const [path, code] of [
    ['/status/404', 'deleted'],
    ['/status/401', 'login_required'],
    ['/status/403', 'source_blocked'],
    ['/status/429', 'source_rate_limited'],
    ['/status/451', 'geo_blocked'],
    ['/status/500', 'source_error'],
    ['/films/empty.mp4', 'file_damaged'],
    ['/films/truncated.mp4', 'file_damaged'],
    ['/films/half.mp4', 'file_damaged'],
    ['/films/half.webm', 'file_damaged'],
    ['/films/page.mp4', 'unsupported_url'],
    ['/films/noise.mp4', 'unsupported_url'],
    ['/films/sparse.bin', 'unsupported_url'],
    ['/html/nothing', 'unsupported_url'],
    ['/without/2.ts/hls/list.m3u8', 'source_incomplete'],
    ['/without/0.ts/hls/list.m3u8', 'source_incomplete'],
    ['/without/key/locked/list.m3u8', 'source_incomplete'],
    ['/without/chunk-stream0-00002.m4s/dash/list.mpd', 'source_incomplete'],
    ['/films/audio.m4a', 'no_video'],
    ['/films/cover.mp3', 'no_video'],
    ['/broken', 'source_broken'],
    ['/bomb', 'file_too_large'],
    ['/endless-gzip', 'file_too_large'],
    ['/endless-page', 'file_too_large'],
    ['/to?to=http://127.0.0.1:1/films/clip.mp4', 'address_not_allowed'],
  ] as const) {
    it(`D33 D58 D61 D62 D91 D92 D97: ${path} ends as ${code}`, () => fails(order(path), code));
  }

  // Same sentence and code as a row of classify-failure.test.ts, and the code has a row above.
  for (const [path, code] of [
    ['/status/410', 'deleted'],
    ['/status/503', 'source_error'],
  ] as const) {
    many(`D33 D97: ${path} ends as ${code}`, () => fails(order(path), code));
  }

  for (const kind of ['ranges', 'whole']) {
    it(`a connection that breaks off in the middle is no failure of the attempt (${kind})`, async () => {
      const sums: unknown[] = [];
      const path = `/torn/${kind}/clip.mp4`;
      fixture.source.forget();
      await good(order(path), ({ produced }) => sums.push(produced?.sha256));
      expect(fixture.source.asked.filter((asked) => asked === path)).to.have.length(3);
      await good(order('/films/clip.mp4'), ({ produced }) => sums.push(produced?.sha256));
      expect(sums[0]).to.equal(sums[1]);
    });
  }

  it('sound of a film without any ends as no_audio', () => fails(sound('/films/silent.mp4'), 'no_audio'));

  for (const [raises, text, code] of [
    ['expected', "Private video. Sign in if you've been granted access to this video", 'private'],
    ['expected', 'Video unavailable. This video has been removed by the uploader', 'video_unavailable'],
    ['expected', 'Sign in to confirm your age. This video may be inappropriate for some users.', 'age_restricted'],
    ['expected', 'Sign in to confirm you’re not a bot', 'source_bot_check'],
    ['login', 'This video is only available for registered users', 'login_required'],
    ['geo', 'Not available in your country', 'geo_blocked'],
    ['drm', '', 'drm_protected'],
    ['no_formats', 'This video is private', 'private'],
    ['not_live', '', 'not_started'],
    ['crash', 'formats', 'extractor_failed'],
  ] as const) {
    it(`video-closed audio-closed D60 D97: a page that says ${JSON.stringify(text)} by ${raises} ends as ${code}`, () => {
      fixture.source.addPage('said', { raises, text });
      return fails(order('/page/said'), code);
    });
  }

  it('D28: a playlist of several entries is refused, however many they are', () => {
    fixture.source.addPage('list', {
      entries: Array.from({ length: 500 }, (_, n) => `${fixture.source.url}/page/heights?${n}`),
    });
    return fails(order('/page/list'), 'playlist_only');
  });

  it('D59: the failure of a premiere names its start', () => {
    fixture.source.addPage('premiere', {
      info: { formats: [], live_status: 'is_upcoming', release_timestamp: 1_900_000_000 },
    });
    return fixture.make(order('/page/premiere'), ({ failed }) => {
      expect(failed).to.include({
        code: 'not_started',
        message: 'This content has not started yet: it starts at 2030-03-17T17:46:40.000Z',
      });
    });
  });

  it('D65: a live stream without max_duration is refused', () => {
    fixture.source.addPage('live', { info: { is_live: true, formats: soundFormats(fixture.source) } });
    return fails(order('/page/live'), 'live_unbounded');
  });

  it('D92: a film far shorter than its page promises is damaged', () => {
    const info = { duration: 60, formats: soundFormats(fixture.source) };
    fixture.source.addPage('liar', { info });
    return fails(sound('/page/liar'), 'file_damaged');
  });

  it('smuggled data in a URL is taken from the extractors alone', async () => {
    const smuggled = encodeURIComponent(JSON.stringify({ force_videoid: 'mine', referer: 'http://mine/' }));
    const to = `/films/clip.mp4#__youtubedl_smuggle=${smuggled}`;
    await good(order(`/to?to=${to}`), ({ produced }) => expect(produced?.metadata.id).to.equal('clip'));
    fixture.source.addPage('smuggling', { entries: [fixture.source.url + to] });
    await good(order('/page/smuggling'), ({ produced }) => expect(produced?.metadata.id).to.equal('clip'));
  });
});
