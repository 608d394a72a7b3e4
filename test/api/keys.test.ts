import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeKey, readKey } from '../../src/model/api-key.ts';
import { deleteKey } from '../../src/store/accounts/delete-key.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type Answer, type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, expectRefused, film, keyedCalls } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { anotherKey } from '../support/record.ts';
import { until } from '../support/until.ts';

describe('the API key', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
  });
  after(() => api.stop());

  const alias = (caller: ApiCaller) => `k${caller.keyId}`;
  /** The answers with the key in the header, and in the query. */
  const both = (method: string, path: string, key: string): Promise<Answer[]> =>
    Promise.all([api.call(method, path, { key }), api.call(method, path, { params: { x_api_key: key } })]);

  describe('is judged on every route', () => {
    const wrong: Record<string, string> = {};
    const off = { inactive: '', expired: '' };
    before(async () => {
      const caller = await api.addCaller();
      const [deleted, known] = [await anotherKey(api.store, caller.account), caller.key];
      await deleteKey(api.store, caller.account, `k${readKey(deleted)!.keyId}`);
      Object.assign(wrong, {
        deleted,
        'of nobody': makeKey(caller.account, randomBytes(32)),
        'of no account': makeKey('0'.repeat(12), randomBytes(32)),
        'with another checksum': `${known.slice(0, -1)}${known.endsWith('0') ? '1' : '0'}`,
        'cut short': known.slice(0, -1),
        'too long': 'x'.repeat(5000),
        'of odd bytes': '\u00e9 "\\',
      });
      const [inactive, expired] = [await api.addCaller(), await api.addCaller()];
      await setKey(api.store, inactive.account, alias(inactive), { active: false, expires: 1 });
      await setKey(api.store, expired.account, alias(expired), { expires: api.store.clock.now() - 1 });
      Object.assign(off, { inactive: inactive.key, expired: expired.key });
    });

    for (const { method, path } of keyedCalls) {
      it(`stats-errors auth-1 auth-2: ${method} ${path} is 401 Invalid API Key without a key and with any that is not known`, async () => {
        const none = await api.call(method, path, {});
        expectRefused(none, 401, 'invalid_api_key', 'Invalid API Key');
        expectRefused(await api.call(method, path, { headers: { 'x-api-key': '' } }), 401, 'invalid_api_key', /^Inv/);
        for (const [name, key] of Object.entries(wrong)) {
          for (const answer of await both(method, path, key)) {
            expect([name, answer.status, answer.json]).to.deep.equal([name, 401, { error: 'Invalid API Key' }]);
          }
        }
      });

      it(`key-deactivate key-expire auth-3 auth-4 D39: ${method} ${path} is 401 for an inactive key, and for one that is past its expiry`, async () => {
        for (const answer of await both(method, path, off.inactive)) {
          expectRefused(answer, 401, 'inactive_api_key', 'Inactive API Key');
        }
        for (const answer of await both(method, path, off.expired)) {
          expectRefused(answer, 401, 'expired_api_key', 'Expired API Key');
        }
      });
    }
  });

  it('key-active key-expires key-reactivate: works again when it is activated, with all its settings, and until its very expiry', async () => {
    const caller = await api.addCaller({ quotas: { daily: 7 } });
    const status = async () => (await api.get('/v1/usage', caller.key)).status;
    const shown = async () => (await api.get('/v1/usage', caller.key)).json.api_key;
    await setKey(api.store, caller.account, alias(caller), { category: 'staging' });
    const before = await shown();
    await setKey(api.store, caller.account, alias(caller), { active: false });
    expect(await status()).to.equal(401);
    await setKey(api.store, caller.account, alias(caller), { active: true });
    expect(await shown()).to.deep.equal(before);
    expect(before).to.deep.include({ active: true, category: 'staging', expires: null });
    await setKey(api.store, caller.account, alias(caller), { expires: api.store.clock.now() + 60_000 });
    expect(await status()).to.equal(200);
    api.store.advance(60_001);
    expect(await status()).to.equal(401);
    await setKey(api.store, caller.account, alias(caller), { expires: null });
    expect(await status()).to.equal(200);
  });

  it('key-category: its category has no effect', async () => {
    const caller = await api.addCaller();
    for (const category of ['production', 'development', 'staging', 'Über-Team 7 "x"', '']) {
      await setKey(api.store, caller.account, alias(caller), { category });
      const { status, json } = await api.get('/v1/usage', caller.key);
      expect([status, json.api_key.category]).to.deep.equal([200, category]);
    }
  });

  it('global-x_api_key auth-1 D11: in the header wins over the query, and an empty header does not count', async () => {
    const [caller, other] = [await api.addCaller(), await api.addCaller()];
    const ask = (key: string, x_api_key: string) =>
      api.call('GET', '/v1/usage', { headers: { 'x-api-key': key }, params: { x_api_key } });
    expect((await ask(caller.key, other.key)).json.account.slug).to.equal(caller.slug);
    expect((await ask(caller.key, 'wrong')).status).to.equal(200);
    expectRefused(await ask('wrong', caller.key), 401, 'invalid_api_key', 'Invalid API Key');
    expect((await ask('', caller.key)).json.account.slug).to.equal(caller.slug);
  });

  it('D5 D10 D11: given twice in the query is 401 without a key in the header, and 400 after it', async () => {
    const [caller, other] = [await api.addCaller(), await api.addCaller()];
    const sentence = 'Bad Request: x_api_key must be given once';
    for (const second of [caller.key, other.key, 'wrong']) {
      const query = `x_api_key=${caller.key}&x_api_key=${second}`;
      for (const path of ['/v1/usage', '/v1/jobs', `/v1/video/download?query=${film}`]) {
        const url = `${path}${path.includes('?') ? '&' : '?'}${query}`;
        expectRefused(await api.get(url), 401, 'invalid_api_key', 'Invalid API Key');
        expectRefused(await api.get(url, caller.key), 400, 'bad_request', sentence);
        expectRefused(await api.get(url, 'wrong'), 401, 'invalid_api_key', 'Invalid API Key');
      }
    }
    expect((await api.get('/v1/jobs', caller.key)).json.jobs).to.deep.equal([]);
  });

  it('global-x_api_key D11 D96: is taken from the body of a POST too, and refused when it is given twice', async () => {
    const caller = await api.addCaller();
    const body = { query: film, x_api_key: caller.key };
    const answer = await api.call('POST', '/v1/video/download', { body });
    expect(answer.status).to.equal(202);
    const job = await api.get(`/v1/jobs/${answer.json.job_id}`, caller.key);
    expect(job.text).not.to.contain(caller.key);
    expect(job.json.args).not.to.have.property('x_api_key');
    const twice = await api.get(`/v1/usage?x_api_key=${caller.key}&x_api_key=${caller.key}`);
    expectRefused(twice, 401, 'invalid_api_key', 'Invalid API Key');
    expect(await sendTwice(caller.key)).to.equal(401);
  });

  /** Node itself joins a header that is sent twice. */
  function sendTwice(key: string): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const asked = request(`${api.url}/v1/usage`, { agent: false }, (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode));
      });
      asked.setHeader('x-api-key', [key, key]);
      asked.once('error', reject).end();
    });
  }

  it('key-secret D11: from the query is in no answer, log line, metric or file of redis', async () => {
    const caller = await api.addCaller();
    const secret = 'Bearer canary-of-a-webhook';
    const params = { query: film, webhook_url: 'https://example.com/hook', webhook_authorization: secret };
    const ask = (path: string, more = {}) => api.get(path, null, { x_api_key: caller.key, ...more });
    const started = await ask('/v1/video/download', params);
    await endJob(api.store, started.json.job_id);
    const answers = [
      started,
      await ask(`/v1/jobs/${started.json.job_id}`),
      await ask('/v1/jobs'),
      await ask('/v1/usage'),
      await ask('/v1/video/download', { query: caller.key }),
      await ask('/v1/video/download', { ...params, video_quality: 'no' }),
      await ask('/v1/media/metadata', { query: film }),
      await api.get('/openapi.json', null, { x_api_key: caller.key }),
      await api.get('/nothing', null, { x_api_key: caller.key }),
    ];
    await until(async () => (await readLines(api.store, caller.account, 50)).length === 8, 5, 'the lines of the log');
    const texts = [
      ...answers.map(({ text, headers }) => text + JSON.stringify([...headers])),
      api.lines.join(''),
      await api.metrics.registry.metrics(),
      JSON.stringify(await readLines(api.store, caller.account, 50)),
      JSON.stringify(await listKeys(api.store, caller.account)),
      await readWritten(),
    ];
    for (const text of texts) {
      for (const canary of [caller.key, caller.key.slice(-20), secret]) expect(text).not.to.contain(canary);
    }
    // The searched files are those that hold all this.
    expect(texts.at(-1)).to.contain(caller.hash).and.contain(film);
  });

  /** Every change that redis has written to its file, as plain text. */
  async function readWritten(): Promise<string> {
    const [, folder] = (await api.redis.connection.send(['CONFIG', 'GET', 'dir'])) as string[];
    const logs = join(folder!, 'appendonlydir');
    return readdirSync(logs)
      .map((name) => readFileSync(join(logs, name), 'latin1'))
      .join('');
  }

  it('auth-2: that is refused holds, charges and starts nothing, and its calls are logged without credits', async () => {
    const caller = await api.addCaller();
    await setKey(api.store, caller.account, alias(caller), { active: false });
    for (const path of creditPaths) await api.get(path, caller.key, { query: film });
    const { balances } = await readSnapshot(api.store, caller.account);
    expect([balances.held, balances.credits_consumed]).to.deep.equal([0, 0]);
    await until(async () => (await readLines(api.store, caller.account, 9)).length === 3, 5, 'the lines');
    const lines = await readLines(api.store, caller.account, 9);
    expect(lines.map(({ status, credits }) => [status, credits])).to.deep.equal(Array(3).fill([401, 0]));
  });
});
