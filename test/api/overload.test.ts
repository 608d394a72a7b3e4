import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { type ApiParts, serveApi } from '../../src/roles/serve-api.ts';
import { keys } from '../../src/store/keys.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { aFilm, startApi, type TestApi } from '../support/api.ts';
import { type BlockingSource, startBlockingSource } from '../support/blocking-source.ts';
import { expectRefused, film } from '../support/calls.ts';
import { freePort } from '../support/free-port.ts';
import type { Json } from '../support/json.ts';
import { trawl } from '../support/operator.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesIn, type RunningUp, startUp } from '../support/up.ts';

const most = 1000;
/** Requests of each wave above the limit. */
const extra = 5;

describe('requests above the limit of requests in hand', () => {
  let api: TestApi;
  let sockets: Socket[] = [];
  before(async () => {
    api = await startApi();
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await api.stop();
  });

  it('are 503 with Retry-After and charge nothing, and those in hand are answered', async () => {
    const caller = await api.addCaller({ credits: 2 * most });
    const inspections: (() => void)[] = [];
    api.inspect(() => new Promise((resolve) => inspections.push(() => resolve({ metadata: aFilm }))));
    const head = `GET /v1/media/metadata?query=${film} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${caller.key}\r\n\r\n`;
    const port = Number(new URL(api.url).port);
    let answers: Promise<string>[] = [];
    for (let wave = 0; wave < 4; wave++) {
      const some = Array.from({ length: most / 4 + extra }, () => connect(port, '127.0.0.1').setEncoding('utf8'));
      answers = answers.concat(some.map(hear));
      await Promise.all(some.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
      for (const socket of some) socket.write(head);
      sockets = sockets.concat(some);
      // One wave after the other: a slow machine may not admit all of them within the 2 s that the record may take.
      const admitted = Math.min(sockets.length, most);
      await until(() => inspections.length >= admitted, 20, `${admitted} calls are admitted`);
    }
    const isFull = async () => (await api.get('/v1/usage', caller.key)).status === 503;
    await until(isFull, 10, 'everybody is in hand');
    for (const path of ['/v1/usage', '/v1/video/download', '/openapi.json']) {
      const answer = await api.get(path, caller.key, { query: film });
      expectRefused(answer, 503, 'unavailable', 'Service Unavailable');
      expect(Number(answer.headers.get('retry-after'))).to.be.above(0);
    }
    let closed = 0;
    for (const answer of answers) void answer.then(() => closed++);
    const before = closed;
    for (const [n, go] of inspections.entries()) {
      go();
      // Few at a time: a slow machine may not charge all of them within the 2 s that the record may take.
      await until(() => closed - before > n - 20, 10, 'the first ones are answered');
    }
    const statuses = (await Promise.all(answers)).map((text) => text.slice(0, 12));
    const tooMany = statuses.filter((status) => status === 'HTTP/1.1 503').length;
    // The request that asks whether everybody is in hand takes a place at that moment.
    expect(tooMany).to.be.within(4 * extra, 4 * extra + 1);
    const answered = statuses.filter((status) => status === 'HTTP/1.1 200').length;
    expect(answered).to.equal(statuses.length - tooMany);
    const { held, total_used } = (await api.get('/v1/usage', caller.key)).json;
    // A call that was too late for its answer may have been admitted; its hold ends by itself.
    const late = await api.store.connection.read(['ZCARD', keys.calls]);
    expect([held, total_used]).to.deep.equal([late, answered]);
    expect(late).to.be.at.most(tooMany);
  });
});

describe('a replica that stops', () => {
  it('has written every line of the request log before it ends', async () => {
    let parts: ApiParts | undefined;
    const first = await startApi({}, (given) => {
      parts = given;
      return given;
    });
    const caller = await first.addCaller();
    const stop = makeShutdown();
    const { port } = await serveApi(parts!, stop);
    const calls = Array.from({ length: 50 }, () =>
      fetch(`http://127.0.0.1:${port}/v1/usage`, { headers: { 'x-api-key': caller.key } }),
    );
    for (const answer of await Promise.all(calls)) expect(answer.status).to.equal(200);
    await stop.run();
    expect(await readLines(first.store, caller.account, 100)).to.have.length(50);
    await first.stop();
  });

  it('answers a call that takes longer than trawl up would wait, where it runs alone', async () => {
    let parts: ApiParts | undefined;
    const first = await startApi({}, (given) => {
      parts = given;
      return given;
    });
    const { promise: answer, resolve } = Promise.withResolvers<object>();
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    first.inspect(() => {
      isAsked();
      return answer;
    });
    const { key } = await first.addCaller();
    const stop = makeShutdown();
    const { port } = await serveApi({ ...parts!, drainSeconds: 30 }, stop);
    const options = { headers: { 'x-api-key': key } };
    const call = fetch(`http://127.0.0.1:${port}/v1/media/metadata?query=https://example.com/a.mp4`, options);
    await asked;
    const began = performance.now();
    const stopped = stop.run();
    try {
      await until(() => performance.now() - began > 9_000, 20, 'nine seconds to pass');
      resolve({ metadata: aFilm });
      expect((await call).status).to.equal(200);
    } finally {
      await stopped;
      await first.stop();
    }
  });

  it('answers a call that does not end with 503 before it cuts its connection, and releases its hold', async () => {
    let parts: ApiParts | undefined;
    const first = await startApi({}, (given) => {
      parts = given;
      return given;
    });
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    first.inspect(async (_, __, gone) => {
      isAsked();
      await gone;
      return null;
    });
    const { key } = await first.addCaller();
    const stop = makeShutdown();
    const { port } = await serveApi({ ...parts!, drainSeconds: 3 }, stop);
    const options = { headers: { 'x-api-key': key } };
    const call = fetch(`http://127.0.0.1:${port}/v1/media/metadata?query=https://example.com/a.mp4`, options);
    await asked;
    const stopped = stop.run();
    try {
      const { status, headers } = await call;
      expect([status, headers.get('x-error-code'), headers.get('retry-after')]).to.deep.equal([
        503,
        'unavailable',
        '2',
      ]);
      const { held, total_used } = (await first.get('/v1/usage', key)).json;
      expect([held, total_used]).to.deep.equal([0, 0]);
    } finally {
      await stopped;
      await first.stop();
    }
  });
});

describe('SIGTERM', () => {
  let folder: string;
  let remove: () => void;
  let up: RunningUp | undefined;
  let source: BlockingSource;
  beforeEach(async () => {
    ({ folder, remove } = aFolder());
    source = await startBlockingSource();
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
  const keyOf = ({ output }: RunningUp) =>
    until(() => /'x-api-key: (\S+)'/.exec(output())?.[1], 5, 'the key') as Promise<string>;

  it('makes the API unready, refuses connections, answers waiting calls and streams, and lets a running call end', async () => {
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
    // A worker may take so long to start that the time for a page would be over for the inspector.
    await until(() => source.asked() === 1, 10, 'the worker has asked for it');
    const stream = await get(`/v1/jobs/${job_id}/events`);
    const waiting = get(`/v1/jobs/${job_id}?wait=30`);
    const metadata = get(`/v1/media/metadata?query=${source.url}/held`);
    await until(() => source.asked() === 2, 10, 'the inspector has asked for it');

    const told = Promise.all([stream.text(), waiting]);
    running.process.kill('SIGTERM');
    const [events, poll] = await told;
    expect(events).to.match(/^id: \d+\nevent: progress\n.*\n\nretry: \d+\n\n$/s);
    expect([poll.status, (await read(poll)).completed_at]).to.deep.equal([200, null]);
    expect(await ready()).to.equal(503);
    expect(await connectTo(url)).to.equal('ECONNREFUSED');
    source.release();
    const answer = await metadata;
    expect([answer.status, answer.headers.get('connection')]).to.deep.equal([404, 'close']);
    expect(answer.headers.get('x-error-code')).to.equal('not_found');
    expect(await running.ended).to.equal(0);
  });

  it('during many calls loses no line of the request log', async () => {
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
    const calls = Array.from({ length: 8 }, callOn);
    await until(() => answered > 200, 10, 'many calls');

    first.process.kill('SIGTERM');
    await Promise.all(calls);

    expect(await first.ended).to.equal(0);

    await start();

    const shown = await trawl(['admin', 'log', 'show', 'sample', '--limit', '10000', '--json'], { TRAWL_DATA: folder });
    expect(JSON.parse(shown.out)).to.have.length(answered);
  });
});

function read(answer: Response): Promise<Json> {
  return answer.json();
}

/** Returns the outcome of a new connection. */
function connectTo(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => resolve('connected'));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    socket.once('connect', () => socket.destroy());
  });
}

/** All that is said over a connection until it closes. */
function hear(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (piece) => {
      text += piece;
    });
    // The output before the error is judged.
    socket.on('error', () => {});
    socket.once('close', () => resolve(text));
  });
}
