import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { type ApiParts, serveApi } from '../../src/roles/serve-api.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { type Held, startHeld } from '../support/held.ts';
import type { Json } from '../support/json.ts';
import { trawl } from '../support/operator.ts';
import { freePort } from '../support/port.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesIn, type Running, startUp } from '../support/up.ts';

const most = 1000;
/** How many more come with each wave than there is room for. */
const extra = 5;

describe('more requests than the API takes in hand', function () {
  this.timeout(120_000);
  let api: TestApi;
  let callers: Socket[] = [];
  before(async () => {
    api = await startApi();
  });
  after(async () => {
    for (const caller of callers) caller.destroy();
    await api.stop();
  });

  it('are 503 with Retry-After and change nothing, and those in hand are answered', async () => {
    const desk = await api.desk();
    const body = JSON.stringify({ query: film, video_quality: 'nonsense' });
    const head = `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${desk.key}\r\n`;
    const port = Number(new URL(api.url).port);
    let answers: Promise<string>[] = [];
    for (let wave = 0; wave < 4; wave++) {
      const some = Array.from({ length: most / 4 + extra }, () => connect(port, '127.0.0.1').setEncoding('utf8'));
      answers = answers.concat(some.map(hear));
      await Promise.all(some.map((caller) => new Promise((resolve) => caller.once('connect', resolve))));
      for (const caller of some) {
        caller.write(
          `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
        );
      }
      callers = callers.concat(some);
    }
    const isFull = async () => (await api.get('/v1/usage', desk.key)).status === 503;
    await until(isFull, 10, 'everybody is in hand');
    for (const path of ['/v1/usage', '/v1/video/download', '/openapi.json']) {
      const answer = await api.get(path, desk.key, { query: film });
      expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
      expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
    }
    for (const caller of callers) caller.write(body.slice(9));
    const statuses = (await Promise.all(answers)).map((text) => text.slice(0, 12));
    const tooMany = statuses.filter((status) => status === 'HTTP/1.1 503').length;
    // Who asks whether everybody is in hand takes a place at that moment.
    expect(tooMany).to.be.within(4 * extra, 4 * extra + 1);
    expect(statuses.filter((status) => status === 'HTTP/1.1 400')).to.have.length(statuses.length - tooMany);
    expect((await api.get('/v1/jobs', desk.key)).json.jobs).to.deep.equal([]);
  });
});

describe('a replica that stops', () => {
  it('has written every line of the request log when it has', async () => {
    let parts: ApiParts | undefined;
    const first = await startApi({}, (given) => {
      parts = given;
      return given;
    });
    const desk = await first.desk();
    const stop = makeShutdown();
    const { port } = await serveApi(parts!, stop);
    const calls = Array.from({ length: 50 }, () =>
      fetch(`http://127.0.0.1:${port}/v1/usage`, { headers: { 'x-api-key': desk.key } }),
    );
    for (const answer of await Promise.all(calls)) expect(answer.status).to.equal(200);
    await stop.run();
    expect(await readLines(first.store, desk.account, 100)).to.have.length(50);
    await first.stop();
  });
});

describe('SIGTERM', function () {
  this.timeout(120_000);
  let folder: string;
  let remove: () => void;
  let up: Running | undefined;
  let source: Held;
  beforeEach(async () => {
    ({ folder, remove } = aFolder());
    source = await startHeld();
  });
  afterEach(async () => {
    up?.process.kill('SIGKILL');
    await up?.ended;
    await source.stop();
    await until(() => processesIn(folder).length === 0, 10, 'no process of a test is left');
    remove();
  });

  const start = async (env = {}) => {
    up = await startUp({ TRAWL_DATA: folder, TRAWL_EGRESS_ALLOW: '127.0.0.1:*', ...env });
    return up;
  };
  const keyOf = ({ said }: Running) =>
    until(() => /'x-api-key: (\S+)'/.exec(said())?.[1], 5, 'the key') as Promise<string>;

  it('readiness goes first; nothing new is taken, who waits is answered, and what is in hand ends', async () => {
    const probe = await freePort();
    const running = await start({ TRAWL_PROBE_PORT: String(probe) });
    const { url } = running;
    const headers = { 'x-api-key': await keyOf(running) };
    const get = (path: string) => fetch(url + path, { headers });
    const ready = async () => (await fetch(`http://127.0.0.1:${probe}/readyz`)).status;
    await until(async () => (await ready()) === 200, 20, 'it is ready');
    const inspected = async () => (await get(`/v1/media/metadata?query=${source.url}/gone`)).status === 404;
    await until(inspected, 20, 'the inspector answers');
    const { job_id } = await read(await get(`/v1/video/download?query=${source.url}/held`));
    const stream = await get(`/v1/jobs/${job_id}/events`);
    const waiting = get(`/v1/jobs/${job_id}?wait=30`);
    const metadata = get(`/v1/media/metadata?query=${source.url}/held`);
    await until(() => source.asked() === 2, 10, 'worker and inspector have asked for it');

    const told = Promise.all([stream.text(), waiting]);
    running.process.kill('SIGTERM');
    const [events, poll] = await told;
    expect(events).to.match(/^id: \d+\nevent: progress\n.*\n\nretry: \d+\n\n$/s);
    expect([poll.status, (await read(poll)).completed_at]).to.deep.equal([200, null]);
    expect(await ready()).to.equal(503);
    expect(await connectTo(url)).to.equal('ECONNREFUSED');
    source.go();
    const answer = await metadata;
    expect([answer.status, answer.headers.get('connection')]).to.deep.equal([404, 'close']);
    expect(answer.headers.get('x-error-code')).to.equal('not_found');
    expect(await running.ended).to.equal(0);
  });

  it('in the middle of many calls loses no line of the request log', async () => {
    const first = await start();
    const headers = { 'x-api-key': await keyOf(first) };
    let answered = 0;
    const callOn = async () => {
      for (;;) {
        const answer = await fetch(`${first.url}/v1/usage`, { headers }).catch(() => null);
        if (answer === null) return;
        if (answer.status === 200) answered++;
      }
    };
    const callers = Array.from({ length: 8 }, callOn);
    await until(() => answered > 200, 10, 'many calls');

    first.process.kill('SIGTERM');
    await Promise.all(callers);

    expect(await first.ended).to.equal(0);

    await start();

    const shown = await trawl(['admin', 'log', 'show', 'sample', '--limit', '10000', '--json'], { TRAWL_DATA: folder });
    expect(JSON.parse(shown.out)).to.have.length(answered);
  });
});

function read(answer: Response): Promise<Json> {
  return answer.json();
}

/** What becomes of a new connection. */
function connectTo(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const caller = connect(Number(new URL(url).port), '127.0.0.1', () => resolve('connected'));
    caller.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    caller.once('connect', () => caller.destroy());
  });
}

/** All that is said over a connection until it closes. */
function hear(caller: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    caller.on('data', (piece) => {
      text += piece;
    });
    // What was said before is judged.
    caller.on('error', () => {});
    caller.once('close', () => resolve(text));
  });
}
