import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { aFilm, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film } from '../support/calls.ts';
import { trawl } from '../support/operator.ts';
import { freePort } from '../support/port.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { type Running, startUp } from '../support/up.ts';

const most = 1000;

describe('more requests than the API takes in hand', function () {
  this.timeout(30_000);
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
      const some = Array.from({ length: most / 4 }, () => connect(port, '127.0.0.1').setEncoding('utf8'));
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
    expect(new Set(statuses)).to.deep.equal(new Set(['HTTP/1.1 400']));
    expect((await api.get('/v1/jobs', desk.key)).json.jobs).to.deep.equal([]);
  });
});

describe('SIGTERM', function () {
  this.timeout(40_000);
  let folder: string;
  let remove: () => void;
  let up: Running | undefined;
  let inspector: Server | undefined;
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(async () => {
    up?.process.kill('SIGKILL');
    await up?.ended;
    inspector?.close();
    inspector = undefined;
    remove();
  });

  const start = async (env = {}) => {
    up = await startUp({ TRAWL_DATA: folder, ...env });
    return up;
  };
  const keyOf = ({ said }: Running) =>
    until(() => /'x-api-key: (\S+)'/.exec(said())?.[1], 5, 'the key') as Promise<string>;

  it('readiness goes first; nothing new is taken, who waits is answered, and what is in hand ends', async () => {
    const probe = await freePort();
    const { url, process: child, ended, ...rest } = await start({ TRAWL_PROBE_PORT: String(probe) });
    const headers = { 'x-api-key': await keyOf({ url, process: child, ended, ...rest }) };
    const ready = async () => (await fetch(`http://127.0.0.1:${probe}/readyz`)).status;
    expect(await ready()).to.equal(200);
    const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    inspector = await inspect(folder, asked.resolve, go.promise);

    const { job_id } = (await json(await fetch(`${url}/v1/video/download?query=${film}`, { headers }))) as Seen;
    const stream = await fetch(`${url}/v1/jobs/${job_id}/events`, { headers });
    const waiting = fetch(`${url}/v1/jobs/${job_id}?wait=30`, { headers });
    const metadata = fetch(`${url}/v1/media/metadata?query=${film}`, { headers });
    await asked.promise;

    const told = Promise.all([stream.text(), waiting]);
    child.kill('SIGTERM');
    const [events, poll] = await told;
    expect(events).to.match(/^id: 1\nevent: progress\ndata: .*\n\nretry: \d+\n\n$/);
    expect([poll.status, ((await json(poll)) as Seen).status]).to.deep.equal([200, 'QueuedJob']);
    expect(await ready()).to.equal(503);
    expect(await connectTo(url)).to.equal('ECONNREFUSED');
    go.resolve();
    const answer = await metadata;
    expect([answer.status, answer.headers.get('connection')]).to.deep.equal([200, 'close']);
    expect(await json(answer)).to.deep.equal({ metadata: aFilm });
    expect(await ended).to.equal(0);
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

interface Seen {
  readonly job_id: string;
  readonly status: string;
}

function json(answer: Response): Promise<unknown> {
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

/** The inspector of a `trawl up`, which tells that it was asked and answers when it may. */
function inspect(data: string, asked: () => void, mayAnswer: Promise<void>): Promise<Server> {
  const server = createServer(async (req, res) => {
    req.resume();
    asked();
    await mayAnswer;
    res.end(JSON.stringify({ metadata: aFilm }));
  });
  return new Promise((resolve) => server.listen(join(data, 'inspector.sock'), () => resolve(server)));
}
