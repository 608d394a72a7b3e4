import { expect } from 'chai';
import { type FailureCode, failures } from '../../src/base/errors.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { type ApiCaller, aFilm, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { endJob } from '../support/job-steps.ts';
import { failed } from '../support/record.ts';

describe('stats', () => {
  let api: TestApi;
  let caller: ApiCaller;
  // A record of its own for each: the statistics are those of the whole platform, and are kept for two seconds.
  beforeEach(async () => {
    api = await startApi();
    caller = await api.addCaller({ stats: true, credits: 1000 });
  });
  afterEach(() => api.stop());

  const tell = async (params: Record<string, string>) => (await api.get('/v1/stats', caller.key, params)).json;

  /** Jobs of an engine that end so, each after so many milliseconds. */
  async function end(
    engine: 'video' | 'audio',
    ends: readonly (FailureCode | null)[],
    milliseconds = 0,
    by = caller,
  ): Promise<void> {
    for (const code of ends) {
      const { json } = await api.get(`/v1/${engine}/download`, by.key, { query: film });
      api.store.advance(milliseconds);
      await endJob(api.store, json.job_id, code === null ? undefined : { ...failed, ...failures[code], code });
    }
  }
  const times = (n: number, code: FailureCode | null) => Array<FailureCode | null>(n).fill(code);

  it('operation-6 stats-fields stats-private stats-answer: has exactly its fields, by engine, by path and by both, under each alias', async () => {
    for (const path of ['/v1/stats', '/api/v1/stats']) {
      const rows: [params: Record<string, string>, engine: string, path: string | null][] = [
        [{ engine: 'video' }, 'video', null],
        [{ engine: 'media', path: '/v1/media/metadata' }, 'media', '/v1/media/metadata'],
        [{ path: '/api/v1/audio/download' }, 'audio', '/v1/audio/download'],
      ];
      for (const [params, engine, about] of rows) {
        const { status, json } = await api.get(path, caller.key, params);
        expect(status).to.equal(200);
        expect(json).to.deep.equal({
          engine,
          path: about,
          health: 'operational',
          success_rate: 100,
          avg_response_time_ms: 0,
          window: '1h',
        });
      }
    }
    expect(await tell({ engine: 'video', fields: 'health' })).to.deep.equal({ health: 'operational' });
  });

  it('stats-engine stats-path stats-errors D51: neither parameter, an empty or unknown one, or a path of another engine is 400; an unknown engine 404', async () => {
    const wrong = ['', 'engine=', 'path=', 'path=x', 'path=/v1/usage', 'path=__proto__', 'path=/v1/video/download/'];
    for (const rest of [...wrong, 'engine=video&path=/v1/audio/download', 'engine=video&engine=audio']) {
      expectRefused(await api.get(`/v1/stats?${rest}`, caller.key), 400, 'bad_request', /^Bad Request: (engine|path) /);
    }
    for (const engine of ['nope', 'VIDEO', '__proto__', 'constructor', 'usage']) {
      expectRefused(await api.get('/v1/stats', caller.key, { engine }), 404, 'not_found', 'Not Found');
    }
  });

  it('price-stats stats-answer stats-errors: is for accounts that may read it, at once, and costs nothing', async () => {
    await setAccount(api.store, caller.account, { stats: false });
    expectRefused(await api.get('/v1/stats', caller.key, { engine: 'video' }), 403, 'forbidden', 'Forbidden');
    await setAccount(api.store, caller.account, { stats: true });
    expect((await api.get('/v1/stats', caller.key, { engine: 'video' })).status).to.equal(200);
    expect((await api.get('/v1/usage', caller.key)).json).to.include({ remaining: 1000, total_used: 0 });
  });

  it('stats-private D52: counts the ended jobs of all accounts, and no accepted or refused call', async () => {
    const other = await api.addCaller({ perMinute: 30 });
    await end('video', [...times(12, 'source_error'), ...times(4, null), ...times(4, 'private')]);
    await end('video', times(4, 'deleted'), 0, other);
    for (let n = 0; n < 10; n++) {
      await api.get('/v1/video/download', caller.key);
      await api.get('/v1/video/download', 'wrong');
      await api.get('/v1/video/download', caller.key, { query: film });
    }
    expect(await tell({ engine: 'video' })).to.include({ success_rate: 50, health: 'degraded' });
    expect(await tell({ engine: 'audio' })).to.include({ success_rate: 100, health: 'operational' });
  });

  it('D52: counts each answer of synchronous metadata, of which only those of 500 are failures', async () => {
    const inspect = async (answer: object, many: number) => {
      api.inspect(() => answer);
      for (let n = 0; n < many; n++) await api.get('/v1/media/metadata', caller.key, { query: film });
    };
    await inspect({ metadata: aFilm }, 5);
    await inspect({ failure: { code: 'private' } }, 5);
    await inspect({ failure: { code: 'deleted' } }, 5);
    await inspect({ failure: { code: 'source_error' } }, 10);
    expect(await tell({ path: '/v1/media/metadata' })).to.include({ success_rate: 60, health: 'degraded' });
  });

  const rates: [bad: number, good: number, rate: number, health: string][] = [
    [1, 0, 95, 'operational'],
    [2, 0, 90, 'operational'],
    [3, 0, 85, 'degraded'],
    [10, 5, 50, 'degraded'],
    [11, 9, 45, 'down'],
    [1, 20, 95.2, 'operational'],
  ];
  for (const [bad, good, rate, health] of rates) {
    it(`stats-health D53: ${bad} failures of ${bad + good} are ${rate} percent, ${health}`, async () => {
      await end('video', [...times(bad, 'timeout'), ...times(good, null)]);
      expect(await tell({ engine: 'video' })).to.include({ success_rate: rate, health });
    });
  }

  it('limit-stats D54: the average is that of durations up to a minute, and 0 without one', async () => {
    const began = performance.now();
    await end('audio', times(1, null), 61_000);
    expect((await tell({ engine: 'audio' })).avg_response_time_ms).to.equal(0);
    await end('video', times(1, null), 61_000);
    await end('video', times(1, null), 1000);
    await end('video', times(1, 'source_error'), 3000);
    const { avg_response_time_ms } = await tell({ engine: 'video' });
    expect(avg_response_time_ms).to.be.within(2000, 2001 + Math.ceil(performance.now() - began));
    expect(Number.isInteger(avg_response_time_ms)).to.equal(true);
  });

  it('limit-stats: the window is one hour', async () => {
    await end('video', times(20, 'timeout'));
    api.store.advance(61 * 60_000);
    expect(await tell({ engine: 'video' })).to.include({ success_rate: 100, avg_response_time_ms: 0 });
  });
});
