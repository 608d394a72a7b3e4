import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, keyedCalls } from '../support/calls.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { runJob } from '../support/job-steps.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

/** Together more than the 1,000 requests that may be in hand; an account may watch 100 times at once. */
const [accounts, ofAccount] = [11, 95];

describe('a crowd of callers', () => {
  let api: TestApi;
  let caller: ApiCaller;
  let sockets: Socket[] = [];
  beforeEach(async () => {
    api = await startApi();
    caller = await api.addCaller();
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    sockets = [];
    await api.stop();
  });

  /** Callers who send the same and read nothing; more than 100 idle connections of one address would be closed. */
  async function crowd(size: number, text: string): Promise<void> {
    const port = Number(new URL(api.url).port);
    const wave = Array.from({ length: size }, () => connect(port, '127.0.0.1'));
    sockets.push(...wave);
    await Promise.all(wave.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    for (const socket of wave) socket.write(text);
  }

  const waiting: [how: string, rest: string, countThem: () => Promise<number>][] = [
    ['streams', '/events', countStreams],
    ['polls', '?wait=30', countPolls],
  ];
  for (const [how, rest, countThem] of waiting) {
    it(`a crowd that only ${how} a job does not count towards the limit of requests`, async () => {
      for (let n = 1; n <= accounts; n++) {
        const { key } = await api.addCaller();
        const { job_id } = (await api.get('/v1/video/download', key, { query: film })).json;
        // The place of a job that runs is looked up by polls alone.
        await runJob(api.store, job_id);
        await crowd(ofAccount, `GET /v1/jobs/${job_id}${rest} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`);
        await until(async () => (await countThem()) === n * ofAccount, 10, 'all to be let in');
      }
      expect((await api.get('/v1/usage', caller.key)).status).to.equal(200);
    });
  }

  async function countStreams(): Promise<number> {
    const told = await api.metrics.registry.metrics();
    return Number(/^trawl_http_requests_total\{route="events",status="200"\} (\d+)$/m.exec(told)?.[1] ?? 0);
  }

  /** Number of times that redis has looked up the position of a job in the queue. */
  async function countPolls(): Promise<number> {
    const told = String(await api.redis.connection.send(['INFO', 'commandstats']));
    return Number(/cmdstat_zrank:calls=(\d+)/.exec(told)?.[1] ?? 0);
  }
});

describe('a redis that does not answer', () => {
  it('stats-errors error-503 D69: makes every call 503 with Retry-After within 2 s, until it answers again', async () => {
    const api = await startApi();
    const caller = await api.addCaller({ stats: true });
    const params = { query: film, engine: 'video' };
    try {
      const thaw = await freezeProcess(api.redis.pid());
      try {
        const asked = keyedCalls.flatMap(({ method, path }) =>
          [caller.key, 'wrong'].map((key) => timed(api.call(method, path, { key, params }))),
        );
        for (const { answer, seconds } of await Promise.all(asked)) {
          expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
          expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
          expect(seconds).to.be.below(2);
        }
      } finally {
        thaw();
      }
      await until(async () => (await api.get('/v1/usage', caller.key)).status === 200, 2, 'it is served again');
    } finally {
      await api.stop();
    }
  });
});
