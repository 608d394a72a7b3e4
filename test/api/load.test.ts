import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Desk, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, keyedCalls } from '../support/calls.ts';
import { until } from '../support/until.ts';

const most = 1000;

describe('a crowd of callers', function () {
  this.timeout(20_000);
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

  /** So many callers at once who send the same and read nothing. */
  function crowd(size: number, text: string): void {
    const port = Number(new URL(api.url).port);
    for (let n = 0; n < size; n++) {
      const caller = connect(port, '127.0.0.1').on('error', () => {
        // Its end is the test's.
      });
      caller.write(text);
      callers.push(caller);
    }
  }

  it('is served up to 1,000 requests in hand; the next is 503 with Retry-After, until one has ended', async () => {
    crowd(most, `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{`);
    const answer = await until(
      async () => {
        const one = await api.get('/v1/usage', desk.key);
        return one.status === 503 && one;
      },
      10,
      'the crowd to be there',
    );
    expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
    expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
    callers[0]?.destroy();
    await until(async () => (await api.get('/v1/usage', desk.key)).status === 200, 5, 'room');
  });

  it('that only waits for jobs is not in the way of others', async () => {
    const { job_id } = (await api.get('/v1/video/download', desk.key, { query: film })).json;
    const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${desk.key}\r\n\r\n`;
    crowd(most / 2 + 1, ask(`/v1/jobs/${job_id}/events`));
    crowd(most / 2 + 1, ask(`/v1/jobs/${job_id}?wait=30`));
    const streams = async () => {
      const told = await api.metrics.registry.metrics();
      return told.includes(`trawl_http_requests_total{route="events",status="200"} ${most / 2 + 1}\n`);
    };
    await until(streams, 10, 'every stream to be answered');
    const polls = async () => (await readCalls('poll')) >= most / 2 + 1;
    await until(polls, 10, 'every poll to be let in');
    expect((await api.get('/v1/usage', desk.key)).status).to.equal(200);
  });

  /** How often redis has run a script of this name, by the calls it has counted. */
  async function readCalls(_name: string): Promise<number> {
    const told = String(await api.redis.connection.read(['INFO', 'commandstats'], '{trawl}'));
    return Number(/cmdstat_zrank:calls=(\d+)/.exec(told)?.[1] ?? 0);
  }
});

describe('a redis that does not answer', function () {
  this.timeout(20_000);

  it('D69: every call is 503 with Retry-After within two seconds, and is served again within two after', async () => {
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
