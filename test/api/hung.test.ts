import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKey } from '../../src/model/api-key.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { type Answer, type ApiCaller, aFilm, type CallOptions, startApi, type TestApi } from '../support/api.ts';
import { allCalls, creditPaths, expectRefused, film, keyedCalls } from '../support/calls.ts';
import { openEventStream } from '../support/event-stream.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { endJob } from '../support/job-steps.ts';
import { failed, theJob } from '../support/record.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

const blocked = { 'x-forwarded-for': '198.51.100.1' };
const unblocked = { 'x-forwarded-for': '198.51.100.2' };
const settings = { TRAWL_TRUSTED_PROXIES: '127.0.0.1/32', TRAWL_AUTH_FAILURES: '3' };

interface Timed {
  readonly answer: Answer;
  readonly seconds: number;
}

function expectUnavailable({ answer, seconds }: Timed): void {
  expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
  expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
  expect(seconds).to.be.below(2);
}

describe('D69: an API whose Redis cannot be reached', () => {
  let api: TestApi;
  let caller: ApiCaller;
  beforeEach(async () => {
    api = await startApi(settings, (parts) => ({ ...parts, rereadMs: 100 }));
    caller = await api.addCaller({ stats: true });
  });
  afterEach(() => api.stop());

  const start = async (query = film) =>
    String((await api.get('/v1/video/download', caller.key, { query })).json.job_id);
  const isServed = async () => (await api.get('/v1/usage', caller.key)).status === 200;
  const whileHung = async (work: () => Promise<unknown>) => {
    const thaw = await freezeProcess(api.redis.pid());
    try {
      await work();
    } finally {
      thaw();
    }
    await until(isServed, 2, 'it is served again');
  };
  const ask = (method: string, path: string, options: CallOptions) => timed(api.call(method, path, options));

  it('answers every call with 503 within 2 s while Redis hangs, and serves it again within 2 s', async () => {
    const strange = makeKey(caller.account, randomBytes(32));
    await whileHung(async () => {
      const asked = keyedCalls.flatMap(({ method, path }) =>
        [caller.key, strange, 'malformed', null].map((key) =>
          ask(method, path, { key, params: { query: film, engine: 'video' }, headers: unblocked }),
        ),
      );
      for (const one of await Promise.all(asked)) expectUnavailable(one);
      const soft = await api.get('/v1/usage', caller.key, { soft_fail: 'true' });
      expectRefused(soft, 200, 'unavailable', 'Service Unavailable');
      expect(soft.headers.get('x-original-status')).to.equal('503');
    });
    for (const path of ['/v1/usage', '/v1/jobs', '/v1/stats?engine=video']) {
      expect((await api.get(path, caller.key)).status, path).to.equal(200);
    }
    expectRefused(await api.get('/v1/usage', strange), 401, 'invalid_api_key', 'Invalid API Key');
    // A command that Redis had received may have run after all: what it did is whole.
    expect((await verifyLedger(api.store, caller.account)).problems).to.deep.equal([]);
  });

  it('serves the calls that need no record while Redis hangs', async () => {
    for (let n = 0; n < 3; n++) await api.call('GET', '/v1/usage', { key: 'wrong', headers: blocked });
    const id = await start();
    await endJob(api.store, id);
    const link = new URL((await api.get(`/v1/jobs/${id}`, caller.key)).json.result.response);
    await whileHung(async () => {
      expectRefused(
        await api.call('GET', '/v1/usage', { key: caller.key, headers: blocked }),
        403,
        'ip_blocked',
        'IP temporarily blocked',
      );
      expectRefused(await api.get(`${link.pathname}?exp=1&sig=altered`), 403, 'forbidden', 'Forbidden');
      expectUnavailable(await ask('GET', link.pathname + link.search, {}));
      expect((await api.get('/openapi.json')).status).to.equal(200);
      expect((await api.get('/v1/nonsense', caller.key)).status).to.equal(404);
      for (const { path } of allCalls.filter(({ method }) => method === 'OPTIONS')) {
        expect((await api.call('OPTIONS', path)).status).to.equal(204);
      }
    });
  });

  it('answers a waiting poll with 503 while Redis hangs, and a stream goes on afterwards or ends', async () => {
    const id = await start();
    const stream = await openEventStream(api, `/v1/jobs/${id}/events`, caller.key);
    await stream.next();
    const waiting = timed(api.get(`/v1/jobs/${id}`, caller.key, { wait: '30' }));
    await until(async () => (await listeners(id)) > 0, 2, 'the poll waits');
    await whileHung(async () => expectUnavailable(await waiting));
    await endJob(api.store, id);
    const { events } = await stream.rest();
    expect(events.at(-1)?.event).to.be.oneOf([undefined, 'end']);
  });

  it('charges nothing for a call during which Redis hung, and releases its hold by the sweep', async () => {
    const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    api.inspect(async () => {
      asked.resolve();
      await go.promise;
      return { metadata: aFilm };
    });
    const call = api.get('/v1/media/metadata', caller.key, { query: film });
    await asked.promise;
    await whileHung(async () => {
      go.resolve();
      const answer = await call;
      expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
    });
    api.store.advance(70_000);
    await sweepRecord(api.store, { job: 1e12, line: 1e12 });
    const { held, total_used } = (await api.get('/v1/usage', caller.key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
  });

  it('loses no accepted job when Redis is killed, and serves calls within 2 s of its start', async () => {
    const pid = api.redis.pid();
    const calls: Promise<Timed>[] = [];
    const isAway = async () => {
      calls.push(ask('GET', '/v1/video/download', { key: caller.key, params: { query: film } }));
      return (await calls.at(-1))?.answer.status === 503;
    };
    await until(async () => calls.length === 5 || (await isAway()), 5, 'some jobs');
    process.kill(pid, 'SIGKILL');
    // A job whose answer was lost is asked for again, so there may be no refusal.
    const isReplaced = async () => {
      await isAway();
      return api.redis.pid() !== pid;
    };
    await until(isReplaced, 10, 'another redis');
    await until(isServed, 2, 'it is served again');
    const seen = await Promise.all(calls);
    for (const one of seen) if (one.answer.status !== 202) expectUnavailable(one);
    for (const { answer } of seen) if (answer.status === 202) await theJob(api.store, answer.json.job_id);
    expect((await verifyLedger(api.store, caller.account)).problems).to.deep.equal([]);
    expect(seen.filter(({ answer }) => answer.status === 202).length).to.be.at.least(5);
  });

  async function listeners(id: string): Promise<number> {
    const channel = `{trawl}:changed:${id}`;
    return Number(((await api.redis.connection.send(['PUBSUB', 'NUMSUB', channel])) as unknown[])[1]);
  }
});

describe('a record that is nearly full', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi();
    caller = await api.addCaller({ stats: true });
  });
  after(() => api.stop());

  /** Sets the limit of the memory so that so much of it is used; 0 for no limit. */
  const fill = async (share: number) => {
    const told = String(await api.redis.connection.send(['INFO', 'memory']));
    const used = Number(/^used_memory:(\d+)/m.exec(told)?.[1]);
    const limit = share === 0 ? 0 : Math.floor(used / share);
    await api.redis.connection.send(['CONFIG', 'SET', 'maxmemory', String(limit)]);
  };
  const seenRatio = async () => (await api.metrics.redis_memory_ratio.get()).values[0]?.value ?? 0;
  const submit = () => api.get('/v1/video/download', caller.key, { query: film });

  for (const share of [0.9, 1.2]) {
    it(`at ${share * 100} % admits no job, and free routes are served`, async () => {
      const [ended, open] = [(await submit()).json.job_id, (await submit()).json.job_id];
      await endJob(api.store, ended, failed);
      await fill(share);
      await until(async () => (await seenRatio()) > 0.85, 4, 'it is seen');
      for (const path of creditPaths) {
        expectUnavailable(await timed(api.get(path, caller.key, { query: film })));
      }
      expectUnavailable(await timed(api.call('POST', `/v1/jobs/${ended}/retry`, { key: caller.key })));
      for (const path of ['/v1/usage', '/v1/jobs', `/v1/jobs/${open}`, '/v1/stats?engine=video']) {
        expect((await api.get(path, caller.key)).status, path).to.equal(200);
      }
      const cancelled = await api.call('DELETE', `/v1/jobs/${open}`, { key: caller.key });
      expect([cancelled.status, cancelled.json.error_code]).to.deep.equal([200, 'cancelled']);
      expect((await api.get('/v1/usage', caller.key)).json.held).to.equal(0);
      await fill(0);
      await until(async () => (await seenRatio()) < 0.85, 4, 'it is seen');
      const { json } = await submit();
      expect((await api.call('DELETE', `/v1/jobs/${json.job_id}`, { key: caller.key })).status).to.equal(200);
    });
  }
});

describe('an inspector that ends while a call waits for it', () => {
  it('makes the call 503 and charges nothing', async () => {
    const api = await startApi();
    const caller = await api.addCaller();
    api.inspect(() => null);
    expectUnavailable(await timed(api.get('/v1/media/metadata', caller.key, { query: film })));
    const { held, total_used } = (await api.get('/v1/usage', caller.key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
    await api.stop();
  });
});
