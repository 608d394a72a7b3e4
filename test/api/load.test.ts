import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Desk, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, keyedCalls } from '../support/calls.ts';
import { until } from '../support/until.ts';
import { runJob } from '../support/work.ts';

const most = 1000;

describe('a crowd of callers', function () {
  this.timeout(120_000);
  let api: TestApi;
  let desk: Desk;
  let callers: Socket[] = [];
  beforeEach(async () => {
    api = await startApi();
    desk = await api.desk();
  });
  afterEach(async () => {
    for (const caller of callers) caller.destroy();
    callers = [];
    await api.stop();
  });

  /** So many callers who send the same and read nothing. Each wave waits for its connections: a listener takes 511 at once. */
  async function crowd(size: number, text: string): Promise<void> {
    const port = Number(new URL(api.url).port);
    while (size > 0) {
      const wave = Array.from({ length: Math.min(size, 250) }, () => connect(port, '127.0.0.1'));
      callers.push(...wave);
      await Promise.all(wave.map((caller) => new Promise((resolve) => caller.once('connect', resolve))));
      for (const caller of wave) caller.write(text);
      size -= wave.length;
    }
  }

  it('is served up to 1,000 requests in hand; the next is 503 with Retry-After, until one has ended', async () => {
    await crowd(most, `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{`);
    let answer = await api.get('/v1/usage', desk.key);
    const isFull = async () => {
      answer = await api.get('/v1/usage', desk.key);
      return answer.status === 503;
    };
    await until(isFull, 10, 'the crowd to be there');
    expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
    expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
    callers[0]?.destroy();
    await until(async () => (await api.get('/v1/usage', desk.key)).status === 200, 5, 'room');
  });

  const waiting: [how: string, rest: string, countThem: () => Promise<number>][] = [
    ['streams', '/events', countStreams],
    ['polls', '?wait=30', countPolls],
  ];
  for (const [how, rest, countThem] of waiting) {
    it(`that only ${how} a job is not in the way of others`, async () => {
      const { job_id } = (await api.get('/v1/video/download', desk.key, { query: film })).json;
      // The place of a job that runs is looked up by polls alone.
      await runJob(api.store, job_id);
      await crowd(most + 1, `GET /v1/jobs/${job_id}${rest} HTTP/1.1\r\nHost: x\r\nx-api-key: ${desk.key}\r\n\r\n`);
      await until(async () => (await countThem()) === most + 1, 10, 'all to be let in');
      expect((await api.get('/v1/usage', desk.key)).status).to.equal(200);
    });
  }

  async function countStreams(): Promise<number> {
    const told = await api.metrics.registry.metrics();
    return Number(/^trawl_http_requests_total\{route="events",status="200"\} (\d+)$/m.exec(told)?.[1] ?? 0);
  }

  /** How often redis has looked up the place of a job in the queue. */
  async function countPolls(): Promise<number> {
    const told = String(await api.redis.connection.send(['INFO', 'commandstats']));
    return Number(/cmdstat_zrank:calls=(\d+)/.exec(told)?.[1] ?? 0);
  }
});

describe('a redis that does not answer', function () {
  this.timeout(120_000);

  it('stats-errors error-503 D69: every call is 503 with Retry-After within two seconds, and is served again within two after', async () => {
    const api = await startApi();
    const desk = await api.desk({ stats: true });
    const timed = async (call: () => ReturnType<TestApi['call']>) => {
      const began = performance.now();
      const answer = await call();
      return { answer, seconds: (performance.now() - began) / 1000 };
    };
    const params = { query: film, engine: 'video' };
    process.kill(api.redis.pid(), 'SIGSTOP');
    try {
      const asked = keyedCalls.flatMap(({ method, path }) =>
        [desk.key, 'wrong'].map((key) => timed(() => api.call(method, path, { key, params }))),
      );
      for (const { answer, seconds } of await Promise.all(asked)) {
        expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
        expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
        expect(seconds).to.be.below(2);
      }
    } finally {
      process.kill(api.redis.pid(), 'SIGCONT');
    }
    await until(async () => (await api.get('/v1/usage', desk.key)).status === 200, 2, 'it is served again');
    await api.stop();
  });
});
