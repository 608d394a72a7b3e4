import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { endJob, runJob } from '../support/job-steps.ts';

const rounds = 20;
/** A call that takes longer meets what the server does beside it; it is made again and not counted. */
const quickMs = 100;

describe('the Redis commands of hot routes', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller({
      quota: 1000,
      perSecond: 10_000,
      perMinute: 100_000,
      packs: [5],
      quotas: { daily: 10_000 },
      stats: true,
    });
  });
  after(() => api.stop());

  const submit = async (params = {}) =>
    (await api.get('/v1/video/download', caller.key, { query: film, ...params })).json.job_id;

  /**
   * How many commands one call sends. Beside it the server looks at the memory of redis once a second, and writes the lines of
   * the request log twice a second: a quarter of the quick calls at least meet neither, and none sends less than it needs.
   */
  async function countCommands(call: () => Promise<{ status: number }>, status: number): Promise<number> {
    const counts: number[] = [];
    while (counts.length < rounds) {
      const before = api.redis.connection.calls();
      const start = performance.now();
      expect((await call()).status).to.equal(status);
      if (performance.now() - start < quickMs) counts.push(api.redis.connection.calls() - before);
    }
    const [least = 0, ...others] = counts.sort((a, b) => a - b);
    expect(others[rounds / 4], `counts ${counts}`).to.equal(least);
    return least;
  }

  const calls: [what: string, status: number, prepare: () => Promise<() => ReturnType<TestApi['call']>>][] = [
    ['an admission', 202, async () => () => api.get('/v1/video/download', caller.key, { query: film })],
    [
      'an admission with all that it may carry',
      202,
      async () => () =>
        api.call('POST', '/api/v1/audio/download', {
          key: caller.key,
          headers: { 'idempotency-key': `k${Math.random()}` },
          body: { query: film, webhook_url: 'https://example.com/hook', webhook_authorization: 'x', fields: 'job_id' },
        }),
    ],
    [
      'a repeated admission',
      202,
      async () => {
        const options = { key: caller.key, params: { query: film }, headers: { 'idempotency-key': 'one' } };
        await api.call('GET', '/v1/video/download', options);
        return () => api.call('GET', '/v1/video/download', options);
      },
    ],
    ['a refused admission', 400, async () => () => api.get('/v1/video/download', caller.key)],
    [
      'a poll of a job that waits',
      200,
      async () => {
        const id = await submit();
        return () => api.get(`/v1/jobs/${id}`, caller.key);
      },
    ],
    [
      'a poll of a job that runs',
      200,
      async () => {
        const id = await submit();
        await runJob(api.store, id);
        return () => api.get(`/jobs/${id}`, caller.key, { fields: 'progress' });
      },
    ],
    [
      'a poll of a completed job',
      200,
      async () => {
        const id = await submit();
        await endJob(api.store, id);
        return () => api.get(`/v1/jobs/${id}`, caller.key);
      },
    ],
    ['a poll of a malformed id', 400, async () => () => api.get('/v1/jobs/x', caller.key)],
    ['usage', 200, async () => () => api.get('/v1/usage', caller.key)],
    ['reduced usage', 200, async () => () => api.get('/api/usage', caller.key, { view: 'reduced' })],
    [
      'a call of stats that were read a moment ago',
      200,
      async () => () => api.get('/v1/stats', caller.key, { engine: 'audio' }),
    ],
  ];
  for (const [what, status, prepare] of calls) {
    it(`${what} sends exactly one command`, async () => {
      expect(await countCommands(await prepare(), status)).to.equal(1);
    });
  }

  /** Another server beside the same record. */
  async function beside(most: string, work: (other: TestApi) => Promise<void>): Promise<void> {
    const other = await startApi({ TRAWL_AUTH_FAILURES: most }, (parts) => ({ ...parts, store: api.store }));
    await work(other).finally(() => other.stop());
  }

  it('a wrong key sends one command, which counts the failure', () =>
    beside('1000', async (other) => {
      expect(await countCommands(() => other.get('/v1/usage', 'wrong'), 401)).to.equal(1);
    }));

  it('a blocked address sends none', () =>
    beside('1', async (other) => {
      await other.get('/v1/usage', 'wrong');
      expect(await countCommands(() => other.get('/v1/usage', caller.key), 403)).to.equal(0);
    }));
});
