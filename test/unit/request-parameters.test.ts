import { expect } from 'chai';
import fc from 'fast-check';
import { creditParameters, globalParameters, parseRequest, requestText } from '../../src/model/request-parameters.ts';

const query = 'https://example.com/a.mp4';
const notUrl = 'must be an http or https URL';

type Given = Record<string, unknown>;
type Endpoint = keyof typeof creditParameters;

function accept(endpoint: Endpoint, given: Given) {
  const parsed = parseRequest(endpoint, { query, ...given }, []);
  if (!parsed.ok) throw new Error(parsed.sentence);
  return parsed;
}

function refusal(endpoint: Endpoint, given: Given): string | null {
  const parsed = parseRequest(endpoint, { query, ...given }, []);
  return parsed.ok ? null : parsed.sentence;
}

describe('parseRequest fills in defaults', () => {
  const video = { query, download_type: 'audio_video', video_quality: 'best', video_format: 'mp4', is_async: true };
  const audio = { query, download_type: 'audio', audio_quality: 'best', audio_format: 'mp3', is_async: true };
  const rows: [what: string, endpoint: Endpoint, given: Given, args: Given][] = [
    ['of a video', 'video', {}, video],
    ['of a sound', 'audio', {}, audio],
    ['of metadata', 'metadata', {}, { query, is_async: false }],
    ['and takes is_async of metadata as given', 'metadata', { is_async: '1' }, { query, is_async: true }],
    ['D2: and sets is_async of a download', 'video', { is_async: 'false' }, video],
    [
      'and keeps what is given',
      'video',
      { video_quality: '360p', video_format: 'webm', download_type: 'video' },
      { ...video, video_quality: '360p', video_format: 'webm', download_type: 'video' },
    ],
    ['and takes a number from a text', 'audio', { max_duration: '2.5' }, { ...audio, max_duration: 2.5 }],
    ['and takes a number from JSON', 'audio', { max_duration: 86400 }, { ...audio, max_duration: 86400 }],
    ['and ignores unknown parameters', 'video', { 'query[]': 1, video: 'x', audio_quality: 'x', api_key: 'k' }, video],
    ['and ignores a wrong webhook_url of metadata', 'metadata', { webhook_url: 5 }, { query, is_async: false }],
    ['and ignores undefined', 'video', { max_duration: undefined }, video],
    ['and takes the beginning of a part', 'video', { start: '0' }, { ...video, start: 0 }],
    ['and takes a part', 'audio', { start: '1.5', end: 2 }, { ...audio, start: 1.5, end: 2 }],
    ['and takes the end of a part', 'audio', { end: 86400 }, { ...audio, end: 86400 }],
    [
      'and hands the URL on as it was read',
      'metadata',
      { query: 'HTTPS://Example.com/a b#c' },
      { query: 'https://example.com/a%20b#c', is_async: false },
    ],
    ['and leaves soft_fail and fields out', 'metadata', { soft_fail: '1', fields: 'a' }, { query, is_async: false }],
  ];
  for (const [what, endpoint, given, args] of rows) {
    it(what, () => expect(accept(endpoint, given).args).to.deep.equal(args));
  }

  it('shows the arguments in the order of the contract', () => {
    const given = { webhook_authorization: 'x', webhook_url: query, max_duration: '1', is_async: '0' };
    expect(Object.keys(accept('video', given).args)).to.deep.equal([
      'query',
      'download_type',
      'max_duration',
      'video_quality',
      'video_format',
      'webhook_url',
      'webhook_authorization',
      'is_async',
    ]);
  });
});

describe('parseRequest', () => {
  it('shows the authorization of a webhook as *** and hands it back apart', () => {
    const { args, webhook_url, webhook_authorization } = accept('audio', {
      webhook_url: 'https://example.com/hook#x',
      webhook_authorization: 'Bearer hush',
    });
    expect(args).to.include({ webhook_url: 'https://example.com/hook', webhook_authorization: '***' });
    expect([webhook_url, webhook_authorization]).to.deep.equal(['https://example.com/hook', 'Bearer hush']);
    expect(JSON.stringify(args)).not.to.contain('hush');
  });

  it('hands back null for a webhook that is not given', () => {
    const { webhook_url, webhook_authorization } = accept('audio', {});
    expect([webhook_url, webhook_authorization]).to.deep.equal([null, null]);
  });

  it('judges webhook_url and query with the same exceptions', () => {
    const given = { query: 'http://127.0.0.1:9/a', webhook_url: 'http://localhost:9/hook' };
    expect(
      parseRequest('video', given, [{ family: 'ipv4', address: '127.0.0.1', prefix: 32, port: null }]).ok,
    ).to.equal(true);
    expect(parseRequest('video', given, [])).to.deep.equal({
      ok: false,
      sentence: 'Bad Request: query must be a URL with a public address',
    });
  });
});

describe('parseRequest refuses', () => {
  const once = 'must be a single value, given once';
  const type = 'download_type must be one of audio_video, audio, video';
  const quality = 'video_quality must be one of best, 1080p, 720p, 480p, 360p';
  const bitRate = 'audio_quality must be one of best, 320kbps, 256kbps, 128kbps';
  const localWebhook = 'webhook_url must be a URL with a public host name';
  const longWebhook = 'webhook_url must be a URL of at most 2048 characters';
  const rows: [what: string, endpoint: Endpoint, given: Given, rest: string][] = [
    ['video-query: a missing query', 'video', { query: undefined }, 'query is required'],
    ['an empty query', 'audio', { query: '' }, `query ${notUrl}`],
    ['a query of null', 'metadata', { query: null }, `query ${notUrl}`],
    ['a query that is a number', 'video', { query: 5 }, `query ${notUrl}`],
    ['a query that is an object', 'video', { query: { a: 1 } }, `query ${notUrl}`],
    ['two queries', 'video', { query: [query, query] }, `query ${once}`],
    ['a search', 'metadata', { query: 'ytsearch1:cats' }, `query ${notUrl}`],
    ['a local webhook_url', 'video', { webhook_url: 'https://printer.local/' }, localWebhook],
    ['a long webhook_url', 'video', { webhook_url: query.padEnd(2049, 'a') }, longWebhook],
    ['a webhook_url that is a number', 'video', { webhook_url: 5 }, `webhook_url ${notUrl}`],
    ['an unknown quality', 'video', { video_quality: '4k' }, quality],
    ['a quality that is a number', 'video', { video_quality: 720 }, quality],
    ['an empty quality', 'video', { video_quality: '' }, quality],
    ['a quality in capitals', 'video', { video_quality: 'BEST' }, quality],
    ['a quality with a NUL', 'video', { video_quality: 'best\u0000' }, quality],
    ['a quality named as a prototype', 'video', { video_quality: '__proto__' }, quality],
    ['an unknown format', 'video', { video_format: 'avi' }, 'video_format must be one of mp4, webm, mkv'],
    ['video-download_type: an unknown type', 'video', { download_type: 'picture' }, type],
    ['an empty list of types', 'video', { download_type: [] }, `download_type ${once}`],
    ['a type of null', 'video', { download_type: null }, type],
    [
      'audio-download_type: a sound that is a video',
      'audio',
      { download_type: 'video' },
      'download_type must be audio',
    ],
    ['an unknown bit rate', 'audio', { audio_quality: '1kbps' }, bitRate],
    ['an unknown sound format', 'audio', { audio_format: 'ogg' }, 'audio_format must be one of mp3, m4a, wav'],
    ['a wrong is_async', 'metadata', { is_async: 'maybe' }, 'is_async must be true, false, 1 or 0'],
  ];
  for (const [what, endpoint, given, rest] of rows) {
    it(what, () => expect(refusal(endpoint, given)).to.equal(`Bad Request: ${rest}`));
  }

  for (const [given, sentence] of [
    [{ start: -1 }, 'start must be a number from 0 to 86400, such as 90 or 2.5'],
    [{ end: 0 }, 'end must be a number above 0 and at most 86400, such as 90 or 2.5'],
    [{ start: 2, end: 2 }, 'end must be greater than start'],
    [{ end: 2, max_duration: 1 }, 'max_duration cannot be used with start or end'],
    [{ start: 0, max_duration: 1 }, 'max_duration cannot be used with start or end'],
  ] as const) {
    it(`D31: refuses ${JSON.stringify(given)}`, () =>
      expect(refusal('video', given)).to.equal(`Bad Request: ${sentence}`));
  }

  const duration = 'Bad Request: max_duration must be a number above 0 and at most 86400, such as 90 or 2.5';
  const noDurations = '0|0.0|-1|+1|1e3|0x10|.5|5.| 5|5 ||ten|NaN|Infinity|86400.1|1,5|٣'.split('|');
  for (const given of [...noDurations, '9'.repeat(400), 0, -1, 86400.5, true, null, {}]) {
    it(`video-max_duration D31: the max_duration ${JSON.stringify(given).slice(0, 12)}`, () =>
      expect(refusal('audio', { max_duration: given })).to.equal(duration));
  }

  const authorization =
    'Bad Request: webhook_authorization must be 1 to 4096 visible ASCII characters, with spaces only between them';
  const noHeaders = '| | a|a |a\r\nX: 1|a\nb|a\n|a\u0000b|a\tb|ü|\u007f|\ud800'.split('|');
  for (const given of [...noHeaders, 'x'.repeat(4097), 5, null]) {
    it(`the authorization ${JSON.stringify(given).slice(0, 12)}`, () =>
      expect(refusal('video', { webhook_authorization: given })).to.equal(authorization));
  }

  it('nothing of an authorization of 4096 characters with inner spaces', () =>
    expect(refusal('video', { webhook_authorization: `Bearer ${'x'.repeat(4089)}` })).to.equal(null));

  const orders: [given: Given, name: string][] = [
    [{ query: 'x', video_quality: 'x', soft_fail: 'x', is_async: 'x', fields: 5 }, 'soft_fail'],
    [{ query: 'x', is_async: 'x', fields: 5 }, 'is_async'],
    [{ query: 'x', fields: 5 }, 'fields'],
    [{ webhook_url: 'x', video_quality: 'x', query: 'x' }, 'query'],
    [{ webhook_url: 'x', video_format: 'x', max_duration: 'x', download_type: 'x' }, 'download_type'],
    [{ webhook_url: 'x', video_format: 'x', max_duration: 'x' }, 'max_duration'],
    [{ video_format: 'x', video_quality: 'x' }, 'video_quality'],
    [{ webhook_authorization: '', webhook_url: 'x', video_format: 'x' }, 'video_format'],
    [{ webhook_authorization: '', webhook_url: 'x' }, 'webhook_url'],
  ];
  for (const [given, name] of orders) {
    it(`${name} first of ${Object.keys(given)}`, () =>
      expect(refusal('video', given)).to.match(new RegExp(`^Bad Request: ${name} must`)));
  }

  it('inherited values and own prototypes', () => {
    expect(parseRequest('metadata', Object.create({ query }), []).ok).to.equal(false);
    expect(parseRequest('metadata', JSON.parse(`{"__proto__":{"query":"${query}"}}`), []).ok).to.equal(false);
  });
});

describe('requestText', () => {
  const base = { max_duration: '2', webhook_url: 'https://example.com/hook', webhook_authorization: 'one' };
  const textOf = (endpoint: Endpoint, given: Given) => {
    const { args, webhook_authorization } = accept(endpoint, given);
    return requestText(args, webhook_authorization);
  };
  const text = (given: Given) => textOf('video', { ...base, ...given });

  for (const [what, given] of [
    ['the order of parameters', Object.fromEntries(Object.entries({ query, ...base }).reverse())],
    ['defaults written out', { video_quality: 'best', video_format: 'mp4', is_async: 'FALSE' }],
    ['another spelling of a number', { max_duration: 2 }],
    ['another spelling of the URL', { query: 'HTTPS://example.com:443/a.mp4#' }],
    ['a fragment of the webhook', { webhook_url: 'https://example.com/hook#x' }],
    ['parameters that are no arguments', { soft_fail: 'true', fields: 'job_id', unknown: 'x' }],
  ] as const) {
    it(`is the same for ${what}`, () => expect(text(given)).to.equal(text({})));
  }

  for (const [what, given] of [
    ['another URL', { query: 'https://example.com/b.mp4' }],
    ['another fragment of the URL', { query: `${query}#x` }],
    ['another quality', { video_quality: '720p' }],
    ['another webhook', { webhook_url: 'https://example.com/other' }],
    ['another authorization', { webhook_authorization: 'two' }],
    ['no authorization', { webhook_authorization: undefined }],
    ['the authorization ***', { webhook_authorization: '***' }],
  ] as const) {
    it(`is another for ${what}`, () => expect(text(given)).not.to.equal(text({})));
  }

  it('is another for asynchronous metadata than for synchronous', () =>
    expect(textOf('metadata', {})).not.to.equal(textOf('metadata', { is_async: true })));

  it('sorts by name', () =>
    expect(requestText({ c: true, a: 'x', b: 1 }, null)).to.equal('[["a","x"],["b",1],["c",true]]'));
});

describe('any set of parameters', () => {
  const names = [
    ...Object.keys({ ...creditParameters.video, ...creditParameters.audio, ...globalParameters }),
    'other',
  ];
  const good = fc.constantFrom('best', 'audio', 'mp3', 'mp4', '720p', '1', 'true', 'a.b', query, 'http://127.0.0.1/');
  const value = fc.oneof(good, fc.jsonValue(), fc.string({ unit: 'binary' }), fc.double(), fc.webUrl());
  const given = fc.dictionary(fc.constantFrom(...names), value).map((some): Given => ({ query, ...some }));

  it('is refused with a sentence that names a known parameter, or understood the same way again', () => {
    fc.assert(
      fc.property(fc.constantFrom('video', 'audio', 'metadata'), given, (endpoint, some) => {
        const parsed = parseRequest(endpoint, some, []);
        if (!parsed.ok) {
          expect(names).to.include(/^Bad Request: (\w+) (?:must be|is required)/.exec(parsed.sentence)?.[1]);
          return;
        }
        const { args, webhook_authorization } = parsed;
        const again = parseRequest(
          endpoint,
          webhook_authorization === null ? args : { ...args, webhook_authorization },
          [],
        );
        expect(again).to.deep.equal(parsed);
      }),
      { numRuns: 300 },
    );
  });
});
