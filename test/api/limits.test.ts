import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type ApiCaller, type CallOptions, startApi, type TestApi } from '../support/api.ts';
import { creditPaths, expectRefused, film, keyedCalls, unknownId } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { anotherKey, aPlan } from '../support/record.ts';
import { until } from '../support/until.ts';

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

  const alias = (caller: ApiCaller) => `k${caller.keyId}`;
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
        const caller = await api.addCaller({ quotas: { [window]: 2 } });
        expect((await download(caller.key)).status).to.equal(202);
        expect((await download(caller.key)).status).to.equal(202);
        for (const path of creditPaths) {
          const refused = await api.get(path, caller.key, { query: film });
          expectRefused(refused, 401, 'key_quota_exceeded', quotaSentence(window));
          const wait = refused.headers.get('retry-after');
          if (longestWait === null) expect(wait).to.equal(null);
          else expect(Number(wait)).to.be.within(1, longestWait);
        }
        await setKey(api.store, caller.account, alias(caller), { quotas: { [window]: 3 } });
        expect((await download(caller.key)).status).to.equal(202);
        expect((await download(caller.key)).status).to.equal(401);
        await setKey(api.store, caller.account, alias(caller), { quotas: { [window]: null } });
        expect((await download(caller.key)).status).to.equal(202);
      });
    }

    it('D35: count admitted credit calls alone, and refuse only those and retry', async () => {
      const caller = await api.addCaller({ quotas: { total: 2 }, stats: true });
      const { job_id } = (await download(caller.key)).json;
      const free = ['/v1/usage', '/v1/jobs', `/v1/jobs/${job_id}`, '/v1/stats?engine=video'];
      for (let times = 0; times < 3; times++) {
        for (const path of free) expect((await api.get(path, caller.key)).status, path).to.equal(200);
        expect((await api.get('/v1/video/download', caller.key)).status).to.equal(400);
      }
      await endJob(api.store, job_id);
      expect((await api.get('/v1/media/metadata', caller.key, { query: film })).status).to.equal(200);
      expectRefused(await download(caller.key), 401, 'key_quota_exceeded', quotaSentence('total'));
      const retry = await api.call('POST', `/v1/jobs/${job_id}/retry`, { key: caller.key });
      expectRefused(retry, 401, 'key_quota_exceeded', quotaSentence('total'));
      for (const path of free) expect((await api.get(path, caller.key)).status, path).to.equal(200);
      expect((await api.call('DELETE', `/v1/jobs/${job_id}`, { key: caller.key })).status).to.equal(200);
      expect((await download(await anotherKey(api.store, caller.account))).status).to.equal(202);
    });

    it('D79: are named in the order total, monthly, weekly, daily', async () => {
      const caller = await api.addCaller({ quotas: { total: 0, monthly: 0, weekly: 0, daily: 0 } });
      for (const window of ['total', 'monthly', 'weekly', 'daily']) {
        expect((await download(caller.key)).json.error).to.equal(quotaSentence(window));
        await setKey(api.store, caller.account, alias(caller), { quotas: { [window]: null } });
      }
      expect((await download(caller.key)).status).to.equal(202);
    });
  });

  describe('the rate of a plan', () => {
    for (const { method, path } of keyedCalls) {
      it(`limit-rate D37 D78: refuses ${method} ${path} with 429 above it, for every key of the account`, async () => {
        const caller = await api.addCaller({ perMinute: 1, stats: true });
        expect((await api.get('/v1/usage', await anotherKey(api.store, caller.account))).status).to.equal(200);
        const answer = await api.call(method, path, { key: caller.key });
        expectRefused(answer, 429, 'rate_limited', minuteSentence);
        expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 66);
        expect(answer.headers.get('ratelimit')).to.equal('"per-minute";r=0;t=60');
      });

      it(`error-429 D37: is in the headers of ${method} ${path} with what is left, and in none without a plan`, async () => {
        const [caller, free] = [await api.addCaller({ perSecond: 10, perMinute: 50 }), await api.addCaller()];
        const answer = await api.call(method, path, { key: caller.key });
        expect(answer.headers.get('ratelimit-policy')).to.equal('"per-second";q=10;w=1, "per-minute";q=50;w=60');
        expect(answer.headers.get('ratelimit')).to.equal('"per-second";r=9;t=1, "per-minute";r=49;t=60');
        const without = await api.call(method, path, { key: free.key });
        expect([without.headers.get('ratelimit'), without.headers.get('ratelimit-policy')]).to.deep.equal([null, null]);
      });
    }

    it('D37: per second refuses with its own sentence until the second is over', async () => {
      const caller = await api.addCaller({ perSecond: 2 });
      const thawClock = api.store.freezeClock();
      await Promise.all([api.get('/v1/usage', caller.key), api.get('/v1/usage', caller.key)]);
      expectRefused(await api.get('/v1/usage', caller.key), 429, 'rate_limited', secondSentence);
      thawClock();
      api.store.advance(1100);
      expect((await api.get('/v1/usage', caller.key)).status).to.equal(200);
    });

    it('D78: is used up by calls that later checks refuse, not by calls that it or earlier checks refuse', async () => {
      const caller = await api.addCaller({ perMinute: 2 });
      await api.get('/v1/usage', 'wrong');
      expect((await api.get('/v1/video/download', caller.key)).status).to.equal(400);
      expect((await api.get('/v1/stats', caller.key)).status).to.equal(403);
      for (let times = 0; times < 4; times++) expect((await api.get('/v1/usage', caller.key)).status).to.equal(429);
      api.store.advance(66_000);
      expect((await api.get('/v1/usage', caller.key)).status).to.equal(200);
    });

    it('is that of the changed plan from the next request on', async () => {
      const caller = await api.addCaller({ perMinute: 1 });
      await api.get('/v1/usage', caller.key);
      expect((await api.get('/v1/usage', caller.key)).status).to.equal(429);
      await aPlan(api.store, caller.plan, {});
      expect((await api.get('/v1/usage', caller.key)).status).to.equal(200);
    });
  });

  it('D72: a call above the open jobs of the account is 429 with a sentence and a time to wait, until a job ends', async () => {
    const caller = await api.addCaller({ max_open: 1 });
    const { job_id } = (await download(caller.key)).json;
    const refused = await download(caller.key);
    expectRefused(refused, 429, 'rate_limited', 'You have exceeded the open-jobs rate limit on your subscription');
    expect(refused.headers.get('retry-after')).to.match(/^[1-9]\d?$/);
    expect((await readSnapshot(api.store, caller.account)).balances.held).to.equal(1);
    expect((await api.get('/v1/media/metadata', caller.key, { query: film })).status).to.equal(200);
    await endJob(api.store, job_id);
    expect((await download(caller.key)).status).to.equal(202);
  });

  it('D72: a batch of more jobs than the account may ever have open is 429 without a time to wait', async () => {
    const { key } = await api.addCaller({ max_open: 1 });
    const body = { endpoint: 'video', items: [{ query: film }, { query: film }], max_credits: 2 };
    const refused = await api.call('POST', '/v1/batches', { key, body });
    expectRefused(refused, 429, 'rate_limited', 'You have exceeded the open-jobs rate limit on your subscription');
    expect(refused.headers.get('retry-after')).to.equal(null);
  });

  describe('a suspended account', () => {
    let caller: ApiCaller;
    before(async () => {
      caller = await api.addCaller({ suspended: true, stats: true });
    });
    for (const { method, path } of keyedCalls) {
      it(`error-403-forbidden rule-5 D76: ${method} ${path} is 403 Forbidden`, async () => {
        const answer = await api.call(method, path, { key: caller.key, params: { query: film, engine: 'video' } });
        expectRefused(answer, 403, 'forbidden', 'Forbidden');
      });
    }
    it('D76: has its balances and works again when it is no longer suspended', async () => {
      await setAccount(api.store, caller.account, { suspended: false });
      expect((await api.get('/v1/usage', caller.key)).json).to.deep.include({ remaining: 100, held: 0 });
    });
  });

  describe('the order of checks', () => {
    /** The checks that fail, each before all that follow it. */
    const checks: [name: string, status: number][] = [
      ['body', 413],
      ['key', 401],
      ['rate', 429],
      ['repeat', 409],
      ['permission', 403],
      ['quota', 401],
      ['parameters', 400],
      ['balance', 402],
      ['no check', 202],
    ];
    for (const [n, [name, status]] of checks.entries()) {
      it(`D10: answers ${status} when ${name} and all later checks fail`, async () => {
        const inTheWay = new Set(checks.slice(n).map(([check]) => check));
        const caller = await api.addCaller({ credits: inTheWay.has('balance') ? 0 : 1, perMinute: 2 });
        const options = await stand(caller, inTheWay);
        expect((await api.call('POST', '/v1/video/download', options)).status).to.equal(status);
        const { balances } = await readSnapshot(api.store, caller.account);
        expect(balances.held).to.equal(status === 202 ? 1 : 0);
      });
    }

    /** Puts the checks in the way, and gives the call that meets them. */
    async function stand(caller: ApiCaller, checks: ReadonlySet<string>): Promise<CallOptions> {
      const headers = { 'idempotency-key': 'one' };
      if (checks.has('repeat')) await remember(caller, headers);
      if (checks.has('rate')) {
        await aPlan(api.store, caller.plan, { perMinute: 1 });
        await api.get('/v1/usage', caller.key);
      }
      if (checks.has('permission')) await setAccount(api.store, caller.account, { suspended: true });
      if (checks.has('quota')) await setKey(api.store, caller.account, alias(caller), { quotas: { total: 0 } });
      if (checks.has('key')) await setKey(api.store, caller.account, alias(caller), { active: false });
      return {
        key: caller.key,
        // Parameters that are wrong cannot also be those of another call, so a repeat is tried with good ones.
        params: checks.has('parameters') && !checks.has('repeat') ? { query: 'x' } : { query: film },
        headers: checks.has('repeat') ? headers : {},
        body: checks.has('body') ? { a: 'x'.repeat(17_000) } : {},
      };
    }

    /** A call with the same Idempotency-Key and other parameters, which ended. */
    async function remember(caller: ApiCaller, headers: Record<string, string>): Promise<void> {
      await aPlan(api.store, caller.plan, { quota: 1 });
      const params = { query: `${film}?other` };
      const { json } = await api.call('GET', '/v1/video/download', { key: caller.key, params, headers });
      await api.call('DELETE', `/v1/jobs/${json.job_id}`, { key: caller.key });
      await aPlan(api.store, caller.plan, { perMinute: 50 });
    }

    it('D10 D12: answers a repeat although quota and balance are used up since', async () => {
      const caller = await api.addCaller({ credits: 1 });
      const call = () =>
        api.call('GET', '/v1/video/download', {
          key: caller.key,
          params: { query: film },
          headers: { 'idempotency-key': 'gone' },
        });
      const first = await call();
      await setKey(api.store, caller.account, alias(caller), { quotas: { total: 1 } });
      await setAccount(api.store, caller.account, { invoice: 'unpaid' });
      const again = await call();
      expect([again.status, again.json]).to.deep.equal([202, first.json]);
    });

    it('D10: counts no refused call towards the quota of a key', async () => {
      const caller = await api.addCaller({ credits: 0, quotas: { total: 1 } });
      for (let times = 0; times < 3; times++) {
        expect((await download(caller.key)).status).to.equal(402);
        expect((await api.get('/v1/video/download', caller.key)).status).to.equal(400);
      }
    });

    it('D10: judges permission before parameters on free routes too', async () => {
      const caller = await api.addCaller();
      for (const rest of ['', '?engine=nope', '?soft_fail=maybe']) {
        expectRefused(await api.get(`/v1/stats${rest}`, caller.key), 403, 'forbidden', 'Forbidden');
      }
      expectRefused(await api.get(`/v1/jobs/${unknownId}`, 'wrong'), 401, 'invalid_api_key', 'Invalid API Key');
    });
  });
});

describe('configured statuses', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_ASYNC_STATUS: '200', TRAWL_KEY_QUOTA_STATUS: '429' });
  });
  after(() => api.stop());

  it('D1: with TRAWL_ASYNC_STATUS=200 an accepted call answers 200, and is logged as 202', async () => {
    const caller = await api.addCaller();
    for (const [path, params] of [
      ['/v1/video/download', {}],
      ['/v1/audio/download', { soft_fail: 'true' }],
      ['/v1/media/metadata', { is_async: 'true' }],
    ] as const) {
      const answer = await api.get(path, caller.key, { query: film, ...params });
      expect([answer.status, Object.keys(answer.json)]).to.deep.equal([200, ['job_id']]);
      expect(answer.headers.get('location')).to.equal(`/v1/jobs/${answer.json.job_id}`);
      expect(answer.headers.get('x-original-status')).to.equal(null);
    }
    await until(async () => (await readLines(api.store, caller.account, 9)).length === 3, 5, 'the lines');
    const lines = await readLines(api.store, caller.account, 9);
    expect(lines.map(({ status, credits }) => [status, credits])).to.deep.equal(Array(3).fill([202, 0]));
  });

  it('rule-1 D34: with TRAWL_KEY_QUOTA_STATUS=429 a reached quota answers 429 with the same sentence and code', async () => {
    const caller = await api.addCaller({ quotas: { weekly: 0 } });
    const answer = await api.get('/v1/video/download', caller.key, { query: film });
    expectRefused(answer, 429, 'key_quota_exceeded', quotaSentence('weekly'));
    expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
  });
});
