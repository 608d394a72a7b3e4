import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, expectRefused, film } from '../support/calls.ts';

const [video = '', audio = '', metadata = ''] = creditPaths;

describe('parameters', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller();
  });
  after(async () => {
    const { balances } = await readSnapshot(api.store, caller.account);
    await api.stop();
    expect([balances.held, balances.credits_consumed]).to.deep.equal([0, 0]);
  });

  const choices: [path: string, name: string, allowed: string][] = [
    [video, 'download_type', 'one of audio_video, audio, video'],
    [video, 'video_quality', 'one of best, 1080p, 720p, 480p, 360p'],
    [video, 'video_format', 'one of mp4, webm, mkv'],
    [audio, 'download_type', 'audio'],
    [audio, 'audio_quality', 'one of best, 320kbps, 256kbps, 128kbps'],
    [audio, 'audio_format', 'one of mp3, m4a, wav'],
  ];
  for (const [path, name, allowed] of choices) {
    it(`D6: ${name} of ${path} must be ${allowed}`, async () => {
      for (const value of ['nonsense', '', 'BEST', ' mp4', '\u0000', '__proto__', '0']) {
        const answer = await api.get(path, caller.key, { query: film, [name]: value });
        expectRefused(answer, 400, 'bad_request', `Bad Request: ${name} must be ${allowed}`);
      }
    });
  }

  for (const path of [video, audio]) {
    it(`video-max_duration audio-max_duration limit-size D31: max_duration of ${path} must be a number above 0 and at most 86400`, async () => {
      for (const max_duration of ['0', '-1', '86400.1', 'ten', '', '1e3', 'NaN']) {
        const answer = await api.get(path, caller.key, { query: film, max_duration });
        expectRefused(
          answer,
          400,
          'bad_request',
          /^Bad Request: max_duration must be a number above 0 and at most 86400/,
        );
      }
    });
  }

  const closed =
    'ytsearch:cats ftp://example.com/a file:///etc/passwd //example.com/a https://user:pass@example.com/a http://10.0.0.1/ http://169.254.169.254/ http://127.1/ http://2130706433/ http://[::1]/ http://[::ffff:10.0.0.1]/ http://localhost/ http://printer.local/ --exec=id'.split(
      ' ',
    );
  for (const path of creditPaths) {
    it(`video-query audio-query metadata-query D28: query of ${path} is required, and must be a public http or https URL`, async () => {
      expectRefused(await api.get(path, caller.key), 400, 'bad_request', 'Bad Request: query is required');
      for (const query of ['', '  ', ...closed]) {
        expectRefused(await api.get(path, caller.key, { query }), 400, 'bad_request', /^Bad Request: query must be /);
      }
    });
  }

  for (const path of [video, audio]) {
    it(`D55: webhook_url of ${path} must be a public http or https URL, and its authorization a header value`, async () => {
      for (const webhook_url of closed) {
        const answer = await api.get(path, caller.key, { query: film, webhook_url });
        expectRefused(answer, 400, 'bad_request', /^Bad Request: webhook_url /);
      }
      for (const webhook_authorization of ['', 'a\r\nX-Evil: 1', 'a\nb', 'x'.repeat(4097), 'ü']) {
        const params = { query: film, webhook_url: 'https://example.com/hook', webhook_authorization };
        expectRefused(
          await api.get(path, caller.key, params),
          400,
          'bad_request',
          /^Bad Request: webhook_authorization /,
        );
      }
    });
  }

  it('D94: a wrong webhook_url of metadata is ignored', async () => {
    const { key } = await api.addCaller();
    expect((await api.get(metadata, key, { query: film, webhook_url: 'nonsense' })).status).to.equal(200);
  });

  it('D4 D5: a value of the wrong type in a JSON body is 400 with its name', async () => {
    const wrong = {
      max_duration: 'ten',
      video_quality: 720,
      soft_fail: 'maybe',
      webhook_url: 5,
      download_type: [],
      query: {},
    };
    for (const [name, value] of Object.entries(wrong)) {
      const answer = await api.call('POST', video, { key: caller.key, body: { query: film, [name]: value } });
      expectRefused(answer, 400, 'bad_request', new RegExp(`^Bad Request: ${name} must be`));
    }
  });
});

describe('synchronous metadata that takes too long', () => {
  let api: TestApi;
  const late = Promise.withResolvers<object>();
  before(async () => {
    api = await startApi({ TRAWL_INSPECT_SECONDS: '1' });
  });
  after(async () => {
    late.resolve({});
    await api.stop();
  });

  it('limit-client D27: is 500 after its time limit, and free', async () => {
    const caller = await api.addCaller();
    api.inspect(() => late.promise);
    const answer = await api.get(metadata, caller.key, { query: film });
    expectRefused(answer, 500, 'internal_error', 'Reading the source took longer than its time limit');
    const { balances } = await readSnapshot(api.store, caller.account);
    expect([balances.held, balances.credits_consumed]).to.deep.equal([0, 0]);
  });
});

describe('TRAWL_EGRESS_ALLOW', () => {
  it('D67: lets callers name an address with its port, by its number and as localhost, and no other', async () => {
    const api = await startApi({ TRAWL_EGRESS_ALLOW: '127.0.0.1:9999' });
    const caller = await api.addCaller();
    for (const host of ['127.0.0.1:9999', 'localhost:9999']) {
      const params = { query: `http://${host}/a.mp4`, webhook_url: `http://${host}/hook` };
      expect((await api.get(video, caller.key, params)).status, host).to.equal(202);
    }
    for (const host of ['127.0.0.1', '127.0.0.2:9999', '10.0.0.1:9999']) {
      expect((await api.get(video, caller.key, { query: `http://${host}/a.mp4` })).status, host).to.equal(400);
    }
    await api.stop();
  });
});
