import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { anotherKey, type CallOptions, type Desk, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, expectRefused, film, keyedCalls, unknownId } from '../support/calls.ts';
import { aPlan } from '../support/record.ts';
import { until } from '../support/until.ts';
import { endJob } from '../support/work.ts';

const minuteSentence = 'You have exceeded the per-minute rate limit on your subscription';
const secondSentence = 'You have exceeded the per-second rate limit on your subscription';
const quotaSentence = (window: string) => `Rate limit exceeded for the API key: quota ${window}`;
const day = 86_400;

describe('limits', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '1000000' });
  });
  after(() => api.stop());

  const alias = (desk: Desk) => `k${desk.keyId}`;
  const download = (key: string) => api.get('/v1/video/download', key, { query: film });

  describe('quotas of a key', () => {
    const windows: [window: string, longestWait: number | null][] = [
      ['total', null],
      ['monthly', 30 * day + 4 * 3600],
      ['weekly', 7 * day + 3600],
      ['daily', day + 300],
    ];
    for (const [window, longestWait] of windows) {
      it(`key-quotas auth-5 error-401-quota limit-none D34 D36: the ${window} quota is named in its 401, tells when to come back if it rolls, and ends when raised`, async () => {
        const desk = await api.desk({ quotas: { [window]: 2 } });
        expect((await download(desk.key)).status).to.equal(202);
        expect((await download(desk.key)).status).to.equal(202);
        for (const path of creditPaths) {
          const refused = await api.get(path, desk.key, { query: film });
          expectRefused(refused, 401, 'key_quota_exceeded', quotaSentence(window));
          const wait = refused.headers.get('retry-after');
          if (longestWait === null) expect(wait).to.equal(null);
          else expect(Number(wait)).to.be.within(1, longestWait);
        }
        await setKey(api.store, desk.account, alias(desk), { quotas: { [window]: 3 } });
        expect((await download(desk.key)).status).to.equal(202);
        expect((await download(desk.key)).status).to.equal(401);
        await setKey(api.store, desk.account, alias(desk), { quotas: { [window]: null } });
        expect((await download(desk.key)).status).to.equal(202);
      });
    }

    it('D35: count admitted credit calls alone, and stop nothing but those and retry', async () => {
      const desk = await api.desk({ quotas: { total: 2 }, stats: true });
      const { job_id } = (await download(desk.key)).json;
      const free = ['/v1/usage', '/v1/jobs', `/v1/jobs/${job_id}`, '/v1/stats?engine=video'];
      for (let times = 0; times < 3; times++) {
        for (const path of free) expect((await api.get(path, desk.key)).status, path).to.equal(200);
        expect((await api.get('/v1/video/download', desk.key)).status).to.equal(400);
      }
      await endJob(api.store, job_id);
      expect((await api.get('/v1/media/metadata', desk.key, { query: film })).status).to.equal(200);
      expectRefused(await download(desk.key), 401, 'key_quota_exceeded', quotaSentence('total'));
      const retry = await api.call('POST', `/v1/jobs/${job_id}/retry`, { key: desk.key });
      expectRefused(retry, 401, 'key_quota_exceeded', quotaSentence('total'));
      for (const path of free) expect((await api.get(path, desk.key)).status, path).to.equal(200);
      expect((await api.call('DELETE', `/v1/jobs/${job_id}`, { key: desk.key })).status).to.equal(200);
      expect((await download(await anotherKey(api.store, desk.account))).status).to.equal(202);
    });

    it('D79: are named in the order total, monthly, weekly, daily', async () => {
      const desk = await api.desk({ quotas: { total: 0, monthly: 0, weekly: 0, daily: 0 } });
      for (const window of ['total', 'monthly', 'weekly', 'daily']) {
        expect((await download(desk.key)).json.error).to.equal(quotaSentence(window));
        await setKey(api.store, desk.account, alias(desk), { quotas: { [window]: null } });
      }
      expect((await download(desk.key)).status).to.equal(202);
    });
  });

  describe('the rate of a plan', () => {
    for (const { method, path } of keyedCalls) {
      it(`limit-rate D37 D78: ${method} ${path} is 429 above it, whatever key of the account is used`, async () => {
        const desk = await api.desk({ perMinute: 1, stats: true });
        expect((await api.get('/v1/usage', await anotherKey(api.store, desk.account))).status).to.equal(200);
        const answer = await api.call(method, path, { key: desk.key });
        expectRefused(answer, 429, 'rate_limited', minuteSentence);
        expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 66);
        expect(answer.headers.get('ratelimit')).to.equal('"per-minute";r=0;t=60');
      });

      it(`error-429 D37: ${method} ${path} tells both rates and what is left of them, and neither without a plan`, async () => {
        const [desk, free] = [await api.desk({ perSecond: 10, perMinute: 50 }), await api.desk()];
        const answer = await api.call(method, path, { key: desk.key });
        expect(answer.headers.get('ratelimit-policy')).to.equal('"per-second";q=10;w=1, "per-minute";q=50;w=60');
        expect(answer.headers.get('ratelimit')).to.equal('"per-second";r=9;t=1, "per-minute";r=49;t=60');
        const without = await api.call(method, path, { key: free.key });
        expect([without.headers.get('ratelimit'), without.headers.get('ratelimit-policy')]).to.deep.equal([null, null]);
      });
    }

    it('D37: per second has its own sentence, and lets through again after that second', async () => {
      const desk = await api.desk({ perSecond: 2 });
      await Promise.all([api.get('/v1/usage', desk.key), api.get('/v1/usage', desk.key)]);
      expectRefused(await api.get('/v1/usage', desk.key), 429, 'rate_limited', secondSentence);
      api.store.advance(1100);
      expect((await api.get('/v1/usage', desk.key)).status).to.equal(200);
    });

    it('D78: calls refused later use it up, calls refused by it or before it do not', async () => {
      const desk = await api.desk({ perMinute: 2 });
      await api.get('/v1/usage', 'wrong');
      expect((await api.get('/v1/video/download', desk.key)).status).to.equal(400);
      expect((await api.get('/v1/stats', desk.key)).status).to.equal(403);
      for (let times = 0; times < 4; times++) expect((await api.get('/v1/usage', desk.key)).status).to.equal(429);
      api.store.advance(66_000);
      expect((await api.get('/v1/usage', desk.key)).status).to.equal(200);
    });

    it('holds for the next request when the plan is changed', async () => {
      const desk = await api.desk({ perMinute: 1 });
      await api.get('/v1/usage', desk.key);
      expect((await api.get('/v1/usage', desk.key)).status).to.equal(429);
      await aPlan(api.store, desk.plan, {});
      expect((await api.get('/v1/usage', desk.key)).status).to.equal(200);
    });
  });

  it('D72: more open jobs than the account may have are 429 with a sentence, and one that ends makes room', async () => {
    const desk = await api.desk({ max_open: 1 });
    const { job_id } = (await download(desk.key)).json;
    const refused = await download(desk.key);
    expectRefused(refused, 429, 'rate_limited', 'You have exceeded the open-jobs rate limit on your subscription');
    expect((await readSnapshot(api.store, desk.account)).balances.held).to.equal(1);
    expect((await api.get('/v1/media/metadata', desk.key, { query: film })).status).to.equal(200);
    await endJob(api.store, job_id);
    expect((await download(desk.key)).status).to.equal(202);
  });

  describe('a suspended account', () => {
    let desk: Desk;
    before(async () => {
      desk = await api.desk({ suspended: true, stats: true });
    });
    for (const { method, path } of keyedCalls) {
      it(`error-403-forbidden rule-5 D76: ${method} ${path} is 403 Forbidden`, async () => {
        const answer = await api.call(method, path, { key: desk.key, params: { query: film, engine: 'video' } });
        expectRefused(answer, 403, 'forbidden', 'Forbidden');
      });
    }
    it('D76: its record is kept, and works again', async () => {
      await setAccount(api.store, desk.account, { suspended: false });
      expect((await api.get('/v1/usage', desk.key)).json).to.deep.include({ remaining: 100, held: 0 });
    });
  });

  describe('the order of checks', () => {
    /** What stands in the way, each before all that follow it. */
    const checks: [name: string, status: number][] = [
      ['body', 413],
      ['key', 401],
      ['rate', 429],
      ['repeat', 409],
      ['permission', 403],
      ['quota', 401],
      ['parameters', 400],
      ['balance', 402],
      ['nothing', 202],
    ];
    for (const [n, [name, status]] of checks.entries()) {
      it(`D10: with ${name} and all after it in the way the answer is ${status}, and nothing is held`, async () => {
        const inTheWay = new Set(checks.slice(n).map(([check]) => check));
        const desk = await api.desk({ credits: inTheWay.has('balance') ? 0 : 1, perMinute: 2 });
        const options = await stand(desk, inTheWay);
        expect((await api.call('POST', '/v1/video/download', options)).status).to.equal(status);
        const { balances } = await readSnapshot(api.store, desk.account);
        expect(balances.held).to.equal(status === 202 ? 1 : 0);
      });
    }

    /** Puts the checks in the way, and gives the call that meets them. */
    async function stand(desk: Desk, checks: ReadonlySet<string>): Promise<CallOptions> {
      const headers = { 'idempotency-key': 'one' };
      if (checks.has('repeat')) await remember(desk, headers);
      if (checks.has('rate')) {
        await aPlan(api.store, desk.plan, { perMinute: 1 });
        await api.get('/v1/usage', desk.key);
      }
      if (checks.has('permission')) await setAccount(api.store, desk.account, { suspended: true });
      if (checks.has('quota')) await setKey(api.store, desk.account, alias(desk), { quotas: { total: 0 } });
      if (checks.has('key')) await setKey(api.store, desk.account, alias(desk), { active: false });
      return {
        key: desk.key,
        // Parameters that are wrong cannot also be those of another call, so a repeat is tried with good ones.
        params: checks.has('parameters') && !checks.has('repeat') ? { query: 'x' } : { query: film },
        headers: checks.has('repeat') ? headers : {},
        body: checks.has('body') ? { a: 'x'.repeat(17_000) } : {},
      };
    }

    /** A call with the same Idempotency-Key and other parameters, which ended. */
    async function remember(desk: Desk, headers: Record<string, string>): Promise<void> {
      await aPlan(api.store, desk.plan, { quota: 1 });
      const params = { query: `${film}?other` };
      const { json } = await api.call('GET', '/v1/video/download', { key: desk.key, params, headers });
      await api.call('DELETE', `/v1/jobs/${json.job_id}`, { key: desk.key });
      await aPlan(api.store, desk.plan, { perMinute: 50 });
    }

    it('D10 D12: a repeat is answered although permission, quota and balance are gone since', async () => {
      const desk = await api.desk({ credits: 1 });
      const call = () =>
        api.call('GET', '/v1/video/download', {
          key: desk.key,
          params: { query: film },
          headers: { 'idempotency-key': 'gone' },
        });
      const first = await call();
      await setKey(api.store, desk.account, alias(desk), { quotas: { total: 1 } });
      await setAccount(api.store, desk.account, { invoice: 'unpaid' });
      const again = await call();
      expect([again.status, again.json]).to.deep.equal([202, first.json]);
    });

    it('D10: a refused call uses up no quota', async () => {
      const desk = await api.desk({ credits: 0, quotas: { total: 1 } });
      for (let times = 0; times < 3; times++) {
        expect((await download(desk.key)).status).to.equal(402);
        expect((await api.get('/v1/video/download', desk.key)).status).to.equal(400);
      }
    });

    it('D10: permission stands before parameters on the free routes too', async () => {
      const desk = await api.desk();
      for (const rest of ['', '?engine=nope', '?soft_fail=maybe']) {
        expectRefused(await api.get(`/v1/stats${rest}`, desk.key), 403, 'forbidden', 'Forbidden');
      }
      expectRefused(await api.get(`/v1/jobs/${unknownId}`, 'wrong'), 401, 'invalid_api_key', 'Invalid API Key');
    });
  });
});

describe('statuses that an operator may choose', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_ASYNC_STATUS: '200', TRAWL_KEY_QUOTA_STATUS: '429' });
  });
  after(() => api.stop());

  it('D1: with TRAWL_ASYNC_STATUS=200 an accepted call answers 200, and is logged as 202', async () => {
    const desk = await api.desk();
    for (const [path, params] of [
      ['/v1/video/download', {}],
      ['/v1/audio/download', { soft_fail: 'true' }],
      ['/v1/media/metadata', { is_async: 'true' }],
    ] as const) {
      const answer = await api.get(path, desk.key, { query: film, ...params });
      expect([answer.status, Object.keys(answer.json)]).to.deep.equal([200, ['job_id']]);
      expect(answer.headers.get('location')).to.equal(`/v1/jobs/${answer.json.job_id}`);
      expect(answer.headers.get('x-original-status')).to.equal(null);
    }
    await until(async () => (await readLines(api.store, desk.account, 9)).length === 3, 5, 'the lines');
    const lines = await readLines(api.store, desk.account, 9);
    expect(lines.map(({ status, credits }) => [status, credits])).to.deep.equal(Array(3).fill([202, 0]));
  });

  it('rule-1 D34: with TRAWL_KEY_QUOTA_STATUS=429 a reached quota answers 429 with the same sentence and code', async () => {
    const desk = await api.desk({ quotas: { weekly: 0 } });
    const answer = await api.get('/v1/video/download', desk.key, { query: film });
    expectRefused(answer, 429, 'key_quota_exceeded', quotaSentence('weekly'));
    expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
  });
});
