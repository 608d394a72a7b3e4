import { mediaChoices } from '../model/media-choices.ts';
import { answered, type Check, check, refused } from './conform-check.ts';
import type { ConformClient } from './conform-client.ts';

const video = '/v1/video/download';
const audio = '/v1/audio/download';
const metadata = '/v1/media/metadata';

const choices = [
  [video, 'download_type', ['audio_video', 'audio', 'video']],
  [video, 'video_quality', mediaChoices.video.quality],
  [video, 'video_format', mediaChoices.video.format],
  [audio, 'download_type', ['audio']],
  [audio, 'audio_quality', mediaChoices.audio.quality],
  [audio, 'audio_format', mediaChoices.audio.format],
] as const;

/** URLs that no deployment may take (D28); one of a machine of its own may be excepted, but not by these names. */
const refusedUrls = [
  'nonsense',
  'ytsearch:a film',
  'ftp://conform.invalid/film.mp4',
  'file:///etc/passwd',
  'https://user:word@conform.invalid/film.mp4',
  'http://0.0.0.0/film.mp4',
  'http://169.254.169.254/latest',
  'http://[fe80::1]/film.mp4',
  'http://film.local/film.mp4',
  'http://intranet/film.mp4',
];

/** Requests that are refused for their parameters; all of them are free. */
export const requestChecks: readonly Check[] = [
  check('D6', 'A 400 names the parameter and what is allowed', async (ask) => {
    for (const path of [video, audio, metadata]) {
      refused(await ask.get(path), 'bad_request', 'Bad Request: query is required');
    }
    for (const [path, name, allowed] of choices) {
      const answer = await ask.get(path, { query: ask.film, [name]: 'nonsense' });
      const words = `${allowed.length > 1 ? 'one of ' : ''}${allowed.join(', ')}`;
      refused(answer, 'bad_request', `Bad Request: ${name} must be ${words}`);
    }
  }),
  check(
    'D5',
    'Booleans are true, false, 1 or 0 in any case; a parameter given twice is 400, an unknown one is ignored',
    booleans,
  ),
  check('D28', 'Only public http and https URLs without credentials are taken', async (ask) => {
    for (const query of refusedUrls) {
      refused(await ask.get(metadata, { query }), 'bad_request', /^Bad Request: query must be /);
    }
  }),
  check('D31', 'max_duration is a number above 0 and at most 86400', async (ask) => {
    for (const value of ['0', '-1', '86400.5', 'nonsense', '']) {
      const answer = await ask.get(audio, { query: ask.film, max_duration: value });
      refused(answer, 'bad_request', /^Bad Request: max_duration must be /);
    }
  }),
  check('D55', 'A webhook to an address that is not public is refused at once', async (ask) => {
    for (const url of ['http://169.254.169.254/hook', 'http://0.0.0.0/hook', 'http://hook.internal/', 'nonsense']) {
      const answer = await ask.get(video, { query: ask.film, webhook_url: url });
      refused(answer, 'bad_request', /^Bad Request: webhook_url must be /);
    }
  }),
  check('D4', 'The credit endpoints take POST with a JSON body of at most 16 KiB', bodies),
];

async function booleans(ask: ConformClient): Promise<void> {
  refused(
    await ask.get('/v1/usage', { soft_fail: 'maybe' }),
    'bad_request',
    'Bad Request: soft_fail must be true, false, 1 or 0',
  );
  for (const word of ['TRUE', 'False', '1', '0']) {
    answered(await ask.get('/v1/usage', { soft_fail: word, nonsense: 'x' }), 200);
  }
  const twice = await ask.get(video, `query=${ask.film}&video_quality=best&video_quality=720p`);
  refused(twice, 'bad_request', /^Bad Request: video_quality must be /);
}

async function bodies(ask: ConformClient): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  for (const body of ['{"query":', '[]', '7', 'null']) {
    refused(await ask.call('POST', video, { body, headers }), 'bad_request', /^Bad Request: the body must be /);
  }
  refused(await ask.call('POST', video, { body: { query: 'x'.repeat(17_000) } }), 'payload_too_large');
  const merged = { query: { query: ask.film, video_format: 'mp4' }, body: { video_format: 'nonsense' } };
  refused(await ask.call('POST', video, merged), 'bad_request', /^Bad Request: video_format must be /);
}
