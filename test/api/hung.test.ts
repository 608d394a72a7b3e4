import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { makeKey } from '../../src/model/api-key.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { type Answer, aFilm, type CallOptions, type Desk, startApi, type TestApi } from '../support/api.ts';
import { allCalls, creditPaths, expectRefused, film, keyedCalls } from '../support/calls.ts';
import { failed, theJob } from '../support/record.ts';
import { openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';
import { endJob } from '../support/work.ts';

const blocked = { 'x-forwarded-for': '198.51.100.1' };
const caller = { 'x-forwarded-for': '198.51.100.2' };
const settings = { TRAWL_TRUSTED_PROXIES: '127.0.0.1/32', TRAWL_AUTH_FAILURES: '3' };

interface Timed {
  readonly answer: Answer;
  readonly seconds: number;
}

async function timed(call: Promise<Answer>): Promise<Timed> {
  const began = performance.now();
  const answer = await call;
  return { answer, seconds: (performance.now() - began) / 1000 };
}

function expectUnavailable({ answer, seconds }: Timed): void {
  expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
  expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
  expect(seconds).to.be.below(2);
}

describe('D69: a record that cannot be reached', function () {
  this.timeout(120_000);
  let api: TestApi;
  let desk: Desk;
  beforeEach(async () => {
    api = await startApi(settings, (parts) => ({ ...parts, rereadMs: 100 }));
    desk = await api.desk({ stats: true });
  });
  afterEach(() => api.stop());

  const start = async (query = film) => String((await api.get('/v1/video/download', desk.key, { query })).json.job_id);
  const isServed = async () => (await api.get('/v1/usage', desk.key)).status === 200;
  const whileHung = async (work: () => Promise<unknown>) => {
    process.kill(api.redis.pid(), 'SIGSTOP');
    try {
      await work();
    } finally {
      process.kill(api.redis.pid(), 'SIGCONT');
    }
    await until(isServed, 2, 'it is served again');
  };
  const ask = (method: string, path: string, options: CallOptions) => timed(api.call(method, path, options));

  it('hung, it makes every call 503 within 2 s, whatever its key; it is served again within 2 s', async () => {
    const strange = makeKey(desk.account, randomBytes(32));
    await whileHung(async () => {
      const asked = keyedCalls.flatMap(({ method, path }) =>
        [desk.key, strange, 'malformed', null].map((key) =>
          ask(method, path, { key, params: { query: film, engine: 'video' }, headers: caller }),
        ),
      );
      for (const one of await Promise.all(asked)) expectUnavailable(one);
      const soft = await api.get('/v1/usage', desk.key, { soft_fail: 'true' });
      expectRefused(soft, 200, 'unavailable', 'Service Unavailable');
      expect(soft.headers.get('x-original-status')).to.equal('503');
    });
    for (const path of ['/v1/usage', '/v1/jobs', '/v1/stats?engine=video']) {
      expect((await api.get(path, desk.key)).status, path).to.equal(200);
    }
    expectRefused(await api.get('/v1/usage', strange), 401, 'invalid_api_key', 'Invalid API Key');
    // A command that Redis had received may have run after all: what it did is whole.
    expect((await verifyLedger(api.store, desk.account)).problems).to.deep.equal([]);
  });

  it('hung, it leaves alone what needs no record', async () => {
    for (let n = 0; n < 3; n++) await api.call('GET', '/v1/usage', { key: 'wrong', headers: blocked });
    const id = await start();
    await endJob(api.store, id);
    const link = new URL((await api.get(`/v1/jobs/${id}`, desk.key)).json.result.response);
    await whileHung(async () => {
      expectRefused(
        await api.call('GET', '/v1/usage', { key: desk.key, headers: blocked }),
        403,
        'ip_blocked',
        'IP temporarily blocked',
      );
      expectRefused(await api.get(`${link.pathname}?exp=1&sig=altered`), 403, 'forbidden', 'Forbidden');
      expectUnavailable(await ask('GET', link.pathname + link.search, {}));
      expect((await api.get('/openapi.json')).status).to.equal(200);
      expect((await api.get('/v1/nonsense', desk.key)).status).to.equal(404);
      for (const { path } of allCalls.filter(({ method }) => method === 'OPTIONS')) {
        expect((await api.call('OPTIONS', path)).status).to.equal(204);
      }
    });
  });

  it('hung, it answers who waits, and a stream goes on afterwards or says that it is over', async () => {
    const id = await start();
    const stream = await openStream(api, `/v1/jobs/${id}/events`, desk.key);
    await stream.next();
    const waiting = timed(api.get(`/v1/jobs/${id}`, desk.key, { wait: '30' }));
    await until(async () => (await listeners(id)) > 0, 2, 'the poll waits');
    await whileHung(async () => expectUnavailable(await waiting));
    await endJob(api.store, id);
    const { events } = await stream.rest();
    expect(events.at(-1)?.event).to.be.oneOf([undefined, 'end']);
  });

  it('hung while a call waits for the inspector, it charges nothing, and the hold ends by itself', async () => {
    const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    api.inspect(async () => {
      asked.resolve();
      await go.promise;
      return { metadata: aFilm };
    });
    const call = api.get('/v1/media/metadata', desk.key, { query: film });
    await asked.promise;
    await whileHung(async () => {
      go.resolve();
      const answer = await call;
      expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
    });
    api.store.advance(70_000);
    await sweepRecord(api.store, { job: 1e12, line: 1e12 });
    const { held, total_used } = (await api.get('/v1/usage', desk.key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
  });

  it('killed, it loses nothing that was accepted, and is served again within 2 s of its start', async () => {
    const pid = api.redis.pid();
    const calls: Promise<Timed>[] = [];
    const isAway = async () => {
      calls.push(ask('GET', '/v1/video/download', { key: desk.key, params: { query: film } }));
      return (await calls.at(-1))?.answer.status === 503;
    };
    await until(async () => calls.length === 5 || (await isAway()), 5, 'some jobs');
    process.kill(pid, 'SIGKILL');
    await until(isAway, 5, 'a refusal');
    await until(async () => api.redis.pid() !== pid, 5, 'another redis');
    await until(isServed, 2, 'it is served again');
    const seen = await Promise.all(calls);
    for (const one of seen) if (one.answer.status !== 202) expectUnavailable(one);
    for (const { answer } of seen) if (answer.status === 202) await theJob(api.store, answer.json.job_id);
    expect((await verifyLedger(api.store, desk.account)).problems).to.deep.equal([]);
    expect(seen.filter(({ answer }) => answer.status === 202).length).to.be.at.least(5);
  });

  async function listeners(id: string): Promise<number> {
    const channel = `{trawl}:changed:${id}`;
    return Number(((await api.redis.connection.send(['PUBSUB', 'NUMSUB', channel])) as unknown[])[1]);
  }
});

describe('a record that is nearly full', function () {
  this.timeout(120_000);
  let api: TestApi;
  let desk: Desk;
  before(async () => {
    api = await startApi();
    desk = await api.desk({ stats: true });
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
  const submit = () => api.get('/v1/video/download', desk.key, { query: film });

  for (const share of [0.9, 1.2]) {
    it(`at ${share * 100} % admits nothing, and everything that is free goes on`, async () => {
      const [ended, open] = [(await submit()).json.job_id, (await submit()).json.job_id];
      await endJob(api.store, ended, failed);
      await fill(share);
      await until(async () => (await seenRatio()) > 0.85, 4, 'it is seen');
      for (const path of creditPaths) {
        expectUnavailable(await timed(api.get(path, desk.key, { query: film })));
      }
      expectUnavailable(await timed(api.call('POST', `/v1/jobs/${ended}/retry`, { key: desk.key })));
      for (const path of ['/v1/usage', '/v1/jobs', `/v1/jobs/${open}`, '/v1/stats?engine=video']) {
        expect((await api.get(path, desk.key)).status, path).to.equal(200);
      }
      const cancelled = await api.call('DELETE', `/v1/jobs/${open}`, { key: desk.key });
      expect([cancelled.status, cancelled.json.error_code]).to.deep.equal([200, 'cancelled']);
      expect((await api.get('/v1/usage', desk.key)).json.held).to.equal(0);
      await fill(0);
      await until(async () => (await seenRatio()) < 0.85, 4, 'it is seen');
      const { json } = await submit();
      expect((await api.call('DELETE', `/v1/jobs/${json.job_id}`, { key: desk.key })).status).to.equal(200);
    });
  }
});

describe('an inspector that ends while a call waits for it', () => {
  it('lets the call be tried again, and nothing is charged', async () => {
    const api = await startApi();
    const desk = await api.desk();
    api.inspect(() => null);
    expectUnavailable(await timed(api.get('/v1/media/metadata', desk.key, { query: film })));
    const { held, total_used } = (await api.get('/v1/usage', desk.key)).json;
    expect([held, total_used]).to.deep.equal([0, 0]);
    await api.stop();
  });
});
