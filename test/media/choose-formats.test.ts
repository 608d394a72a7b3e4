import { expect } from 'chai';
import { chooseFormatsFor } from '../../src/media/choose-formats.ts';
import { readPage } from '../../src/media/source-page.ts';
import { Failed } from '../../src/media/tools.ts';

type Row = Readonly<Record<string, unknown>>;
const audio = (id: string, acodec: string, abr: number | null, more: Row = {}) => ({
  format_id: id,
  vcodec: 'none',
  acodec,
  abr,
  protocol: 'https',
  ...more,
});
const video = (id: string, vcodec: string | null, height: number | null, more: Row = {}) => ({
  format_id: id,
  vcodec,
  acodec: 'none',
  height,
  tbr: height,
  protocol: 'https',
  ...more,
});
const both = (id: string, height: number | null, more: Row = {}) => ({
  ...video(id, 'avc1.4d', height),
  acodec: 'mp4a.40.2',
  ...more,
});

const m4a = audio('m4a', 'mp4a.40.2', 128);
const opus = audio('opus', 'opus', 160);
const mp3 = audio('mp3', 'mp3', 256);
const avc = [360, 480, 720, 1080].map((height) => video(`avc${height}`, 'avc1.64', height));
const vp9 = [360, 480, 720, 1080, 2160].map((height) => video(`vp${height}`, 'vp9', height));
const site = [m4a, opus, ...avc, ...vp9];

const film = { download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' };
const sound = { download_type: 'audio', audio_quality: 'best', audio_format: 'mp3' };

describe('The choice of formats', () => {
  const chosen = (formats: readonly Row[], args: Row, page: Row = { duration: 100 }) => {
    const endpoint = 'audio_format' in args ? 'audio' : 'video';
    try {
      return chooseFormatsFor(readPage({ ...page, formats }), {
        endpoint,
        args: { query: 'http://x/', ...args } as never,
      });
    } catch (error) {
      if (error instanceof Failed) return error.code;
      throw error;
    }
  };
  const ids = (formats: readonly Row[], args: Row, page?: Row) => {
    const choice = chosen(formats, args, page);
    return typeof choice === 'string' ? choice : choice.parts.map((part) => part.id).join(' ');
  };

  for (const [what, formats, args, expected, page] of [
    ['the best picture of all, whatever its codec', site, film, 'vp2160 m4a'],
    ['the most compatible codec of those of one size', site, { ...film, video_quality: '1080p' }, 'avc1080 m4a'],
    ['what webm can hold', site, { ...film, video_quality: '720p', video_format: 'webm' }, 'vp720 opus'],
    ['video-video_quality D29: not above what was asked for', site, { ...film, video_quality: '480p' }, 'avc480 m4a'],
    ['the best below what is not there', [...avc.slice(0, 2), m4a], { ...film, video_quality: '720p' }, 'avc480 m4a'],
    ['D29: the smallest when all are above', [...avc.slice(2), m4a], { ...film, video_quality: '360p' }, 'avc720 m4a'],
    ['video-hour limit-hour: at most 720 of more than an hour', site, film, 'avc720 m4a', { duration: 3601 }],
    ['D30: all of an hour exactly', site, { ...film, video_quality: '1080p' }, 'avc1080 m4a', { duration: 3600 }],
    ['D30: at most 720 of unknown length', site, film, 'avc720 m4a', {}],
    ['all of unknown length when it is cut to less', site, { ...film, max_duration: 60 }, 'vp2160 m4a', {}],
    [
      'less than 720 of a long film when less was asked for',
      site,
      { ...film, video_quality: '360p' },
      'avc360 m4a',
      { duration: 9999 },
    ],
    ['a file of both when there is nothing else', [both('both', 360)], film, 'both'],
    ['a format of which nothing is known', [{ format_id: 'x' }], film, 'x'],
    ['a known size rather than an unknown one', [both('known', 360), both('unknown', null)], film, 'known'],
    ['pictures without sound', [...avc, both('both', 1080), m4a], { ...film, download_type: 'video' }, 'avc1080'],
    ['pictures with sound for want of others', [both('both', 720), m4a], { ...film, download_type: 'video' }, 'both'],
    ['pictures that have no sound', avc, { ...film, video_quality: '360p' }, 'avc360'],
    [
      '1088 rows as 1080',
      [video('big', 'avc1', 1088), ...avc.slice(0, 3), m4a],
      { ...film, video_quality: '1080p' },
      'big m4a',
    ],
    [
      'the shorter side of upright films',
      [video('up', 'avc1', 1280, { width: 720 }), video('upper', 'avc1', 1920, { width: 1080 })],
      { ...film, video_quality: '720p' },
      'up',
    ],
    [
      'the language of the original',
      [
        ...avc,
        audio('dub', 'mp4a', 256, { language_preference: -1 }),
        audio('own', 'mp4a', 128, { language_preference: 10 }),
      ],
      { ...film, video_quality: '360p' },
      'avc360 own',
    ],
    [
      'the original rather than a dub of a higher bit rate in one file with its picture',
      [both('dub', 1080, { tbr: 4602, language_preference: -1 }), both('own', 1080, { language_preference: 10 })],
      film,
      'own',
    ],
    [
      'the film rather than its audio description of a higher bit rate',
      [both('described', 1080, { tbr: 4602, language_preference: -10 }), both('own', 1080)],
      film,
      'own',
    ],
    [
      'a picture with the original as separate sound rather than a dub in one file',
      [
        video('picture', 'avc1', 1080),
        both('dub', 1080, { tbr: 4602, language_preference: -1 }),
        audio('own', 'mp4a', 128, { language_preference: 10 }),
      ],
      film,
      'picture own',
    ],
    [
      'a larger picture with separate sound rather than one file, both in the original',
      [
        video('picture', 'avc1', 2160),
        both('one', 1080, { language_preference: 10 }),
        audio('own', 'mp4a', 128, { language_preference: 10 }),
      ],
      film,
      'picture own',
    ],
    [
      'D29: a dub not above what was asked for rather than the original above it',
      [both('dub', 360, { language_preference: -1 }), both('own', 720, { language_preference: 10 })],
      { ...film, video_quality: '360p' },
      'dub',
    ],
    ['sound in one file rather than a larger picture that stays silent', [...avc, both('both', 360)], film, 'both'],
    [
      'the picture of a dub when no sound is wanted',
      [both('own', 720, { language_preference: 10 }), both('dub', 1080, { language_preference: -1 })],
      { ...film, download_type: 'video' },
      'dub',
    ],
    [
      'nothing that the site advises against',
      [...avc, video('bad', 'avc1', 2160, { preference: -1000 }), m4a],
      film,
      'avc1080 m4a',
    ],
    ['D64: sound for mp4: aac', site, { ...film, download_type: 'audio' }, 'm4a'],
    ['D64: sound for webm: opus', site, { ...film, download_type: 'audio', video_format: 'webm' }, 'opus'],
    ['sound for mkv: the best', site, { ...film, download_type: 'audio', video_format: 'mkv' }, 'opus'],
    ['the best sound to make an mp3 of', [m4a, opus], sound, 'opus'],
    ['an mp3 that is there already', [opus, mp3, m4a], sound, 'mp3'],
    [
      'the best sound when the mp3 must be made anew',
      [audio('flac', 'flac', 900), mp3],
      { ...sound, audio_quality: '128kbps' },
      'flac',
    ],
    ['aac to copy into m4a', site, { ...sound, audio_format: 'm4a', audio_quality: '128kbps' }, 'm4a'],
    [
      'other sound when aac is too large to copy',
      [audio('aac', 'mp4a', 256), opus],
      { ...sound, audio_format: 'm4a', audio_quality: '128kbps' },
      'aac',
    ],
    [
      'the film with the smallest picture that sounds well',
      [both('tiny', 144), both('small', 360), both('big', 1080)],
      sound,
      'small',
    ],
    ['no picture', [m4a, opus], film, 'no_video'],
    ['no sound', avc, sound, 'no_audio'],
    ['no format', [], film, 'extractor_failed'],
    ['pictures of pages alone', [{ format_id: 'sb', vcodec: 'none', acodec: 'none' }], film, 'extractor_failed'],
    ['a live stream without an end', [both('live', 720)], film, 'live_unbounded', { is_live: true }],
    ['a live stream with one', [both('live', 720)], { ...film, max_duration: 9 }, 'live', { is_live: true }],
  ] as const) {
    it(`${what}: ${expected}`, () => expect(ids(formats, args, page)).to.equal(expected));
  }

  for (const [what, page, max_duration, expected] of [
    [
      'the whole when nothing is to be cut',
      { duration: 100 },
      undefined,
      { seconds: null, section: false, expected: 100 },
    ],
    ['the whole of what is shorter', { duration: 100 }, 100, { seconds: null, section: false, expected: 100 }],
    [
      'the whole, cut, when more than half is wanted',
      { duration: 100 },
      60,
      { seconds: 60, section: false, expected: 60 },
    ],
    ['the beginning alone when less is wanted', { duration: 100 }, 20, { seconds: 20, section: true, expected: 20 }],
    ['the beginning alone of unknown length', {}, 20, { seconds: 20, section: true, expected: null }],
    ['that much of a live stream', { is_live: true }, 20, { seconds: 20, section: true, expected: 20 }],
  ] as const) {
    it(`fetches ${what}`, () =>
      expect(chosen([both('x', 360)], { ...film, max_duration }, page)).to.deep.include(expected));
  }
});
