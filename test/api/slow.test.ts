import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { listen } from '../../src/api/http-server.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { film } from '../support/calls.ts';
import { deliverBytes } from '../support/deliver-bytes.ts';
import { openFiles } from '../support/files.ts';
import { expectErrorAnswer, type RawOptions, sendRaw } from '../support/raw-http.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

const timeouts = { headersMs: 150, bodyMs: 200, wholeBodyMs: 300, keepAliveMs: 100, unreadMs: 300, checkMs: 15 };
/** Node keeps an idle connection for a second more than it says. */
const idleMore = 1000;
const late = 'Bad Request: the request took too long to arrive';

describe('slow callers', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi({}, (parts) => ({ ...parts, timeouts }));
    caller = await api.addCaller();
  });
  after(() => api.stop());

  const usage = ({ key } = caller) => `GET /v1/usage?fields=held HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n`;
  const post = (headers: string, { key } = caller) =>
    `POST /v1/video/download HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\n${headers}\r\n`;
  const speak = async (bytes: string, spoken?: RawOptions) => {
    const { answer, seconds } = await timed(sendRaw(api.url, bytes, spoken));
    return { ...answer, waitedSeconds: seconds };
  };
  const within = ({ seconds, waitedSeconds }: Awaited<ReturnType<typeof speak>>, milliseconds: number) => {
    expect(seconds * 1000).to.be.at.least(milliseconds - timeouts.checkMs);
    expect(waitedSeconds * 1000).to.be.at.most(milliseconds + 1000);
  };

  const slow: [title: string, limit: number, bytes: () => string, andThen?: string][] = [
    ['says nothing', timeouts.headersMs, () => ''],
    ['sends empty lines for ever', timeouts.headersMs, () => '\r\n', '\r\n'],
    ['stops within the headers', timeouts.headersMs, () => usage()],
    ['sends headers for ever', timeouts.headersMs, () => usage(), 'A: b\r\n'],
    ['stops within the body', timeouts.bodyMs, () => post('Content-Length: 99\r\n')],
    ['sends the body byte by byte', timeouts.bodyMs, () => post('Content-Length: 9999\r\n'), 'x'],
    ['sends chunks byte by byte', timeouts.bodyMs, () => post('Transfer-Encoding: chunked\r\n'), '1\r\nx\r\n'],
  ];
  for (const [title, limit, bytes, andThen] of slow) {
    it(`are cut off with 408 when one ${title}`, async () => {
      const said = await speak(bytes(), { every: 20, ...(andThen === undefined ? {} : { andThen }) });
      expectErrorAnswer(said);
      expect([said.status, JSON.parse(said.body).error]).to.deep.equal([408, late]);
      within(said, limit);
    });
  }

  it('are answered, and cut off, when one sends a body that the route does not read', async () => {
    const said = await speak(`${usage()}Content-Length: 99999\r\n\r\n`, { andThen: 'x', every: 20 });
    expect(said.text).to.match(/^HTTP\/1\.1 200 .*\r\n\r\n\{"held":0\}/s);
    within(said, timeouts.bodyMs);
  });

  it('are disconnected when one sends no further request for the keep-alive time', async () => {
    const said = await speak(`${usage()}\r\n`);
    expect([said.status, said.body]).to.deep.equal([200, '{"held":0}']);
    within(said, timeouts.keepAliveMs + idleMore);
  });

  const half: [title: string, bytes: (by: ApiCaller) => string, statuses: (number | null)[]][] = [
    ['after a request', (by) => `${usage(by)}\r\n`, [200]],
    ['within the headers', usage, [400]],
    ['within the body', (by) => post('Content-Length: 99\r\n', by), [400]],
  ];
  for (const [title, bytes, statuses] of half) {
    it(`are disconnected at once when one half-closes ${title}`, async () => {
      // With the usual limits: a short one might end on a busy machine before the end of the line arrives.
      const usual = await startApi();
      try {
        const said = await sendRaw(usual.url, bytes(await usual.addCaller()), { end: true });
        expect(said.status, said.text).to.be.oneOf(statuses);
        if (said.status === 400) expectErrorAnswer(said);
      } finally {
        await usual.stop();
      }
    });
  }

  it('are disconnected when one reads nothing of a file for the time limit, and the file is closed', async () => {
    const { json } = await api.get('/v1/video/download', caller.key, { query: film });
    await deliverBytes(api, json.job_id, Buffer.alloc(20_000_000));
    const { response } = (await api.get(`/v1/jobs/${json.job_id}`, caller.key)).json.result;
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1').pause();
    let isClosed = false;
    socket.on('error', () => {}).once('close', () => (isClosed = true));
    const began = performance.now();
    socket.write(`GET ${response.slice(api.url.length)} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => openFiles(json.job_id) === 1, 5, 'the file is read');
    await until(() => openFiles(json.job_id) === 0, 10, 'the file is closed');
    expect(performance.now() - began).to.be.at.least(timeouts.unreadMs);
    socket.resume();
    await until(() => isClosed, 5, 'the connection is closed');
  });

  it('are read to the end of a large body while it arrives steadily, for longer than a small one may take', async () => {
    const patient = await startApi({}, (parts) => ({
      ...parts,
      timeouts: { ...timeouts, bodyMs: 1000, wholeBodyMs: 20_000 },
    }));
    try {
      const { key } = await patient.addCaller();
      const piece = ' '.repeat(100_000);
      const body = ['{}', ...Array(19).fill(piece)];
      const socket = connect(Number(new URL(patient.url).port), '127.0.0.1');
      const closed = once(socket, 'close');
      let text = '';
      socket.on('data', (data) => (text += data)).on('error', () => {});
      socket.write(
        `POST /v1/batches HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.join('').length}\r\n\r\n`,
      );
      for (const part of body) {
        socket.write(part);
        await pause(130);
      }
      await closed;
      expect(text).to.match(/^HTTP\/1\.1 400 .*Bad Request: endpoint is required/s);
    } finally {
      await patient.stop();
    }
  });

  it('are answered when the rest of the headers arrived while this process was halted', async () => {
    const patient = await startApi({}, (parts) => ({ ...parts, timeouts: { ...timeouts, headersMs: 3000 } }));
    const socket = connect(Number(new URL(patient.url).port), '127.0.0.1').on('error', () => {});
    try {
      socket.write('GET /v1/usage HTTP/1.1\r\n');
      let answer = '';
      socket.on('data', (data) => (answer += data));
      // The server has read that when it answers another connection.
      expect((await patient.get('/v1/usage')).status).to.equal(401);
      // After an immediate, timers fire before anything is read.
      setImmediate(() => {
        socket.write('Host: x\r\n\r\n');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3500);
      });
      await until(() => answer !== '', 10, 'the request is answered');
      expect(answer).to.match(/^HTTP\/1\.1 401 /);
    } finally {
      socket.destroy();
      await patient.stop();
    }
  });

  it('are answered when the body arrived while this process was halted', async () => {
    const patient = await startApi({}, (parts) => ({
      ...parts,
      timeouts: { ...timeouts, headersMs: 10_000, bodyMs: 1000, wholeBodyMs: 1500 },
    }));
    const socket = connect(Number(new URL(patient.url).port), '127.0.0.1').on('error', () => {});
    try {
      const { key } = await patient.addCaller();
      socket.write(
        `POST /v1/batches HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`,
      );
      await once(socket, 'data');
      let answer = '';
      socket.on('data', (data) => (answer += data));
      // After an immediate, timers fire before anything is read.
      setImmediate(() => {
        socket.write('{}');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
      });
      await until(() => answer !== '', 10, 'the body is answered');
      expect(answer).to.match(/^HTTP\/1\.1 400 .*Bad Request: endpoint is required/s);
    } finally {
      socket.destroy();
      await patient.stop();
    }
  });

  it('are cut off when one sends 64 KiB of a large body and then nothing more', async () => {
    const patient = await startApi({}, (parts) => ({
      ...parts,
      timeouts: { ...timeouts, bodyMs: 1000, wholeBodyMs: 3_600_000 },
    }));
    const socket = connect(Number(new URL(patient.url).port), '127.0.0.1').on('error', () => {});
    try {
      const { key } = await patient.addCaller();
      const head = `POST /v1/batches HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`;
      socket.write(head);
      const [text] = await once(socket, 'data');
      socket.write(' '.repeat(100_000));
      let answer = '';
      socket.on('data', (data) => (answer += data));
      await until(() => answer.includes(late), 10, 'the body is cut off');
      expect(`${text}${answer}`).to.match(/^HTTP\/1\.1 100 .*HTTP\/1\.1 408 /s);
    } finally {
      socket.destroy();
      await patient.stop();
    }
  });

  it('are cut off when one sends a body steadily for ever', async () => {
    const patient = await startApi({}, (parts) => ({
      ...parts,
      timeouts: { ...timeouts, bodyMs: 1000, wholeBodyMs: 3000 },
    }));
    try {
      const head = 'GET /v1/usage HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000\r\n\r\n';
      const said = await sendRaw(patient.url, head, { andThen: 'x'.repeat(10_000), every: 20 });
      expect(said.status).to.equal(401);
    } finally {
      await patient.stop();
    }
  });

  it('leave the API serving the next caller, without an error in its log', async () => {
    expect((await api.get('/v1/usage', caller.key)).status).to.equal(200);
    expect(api.lines.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
  });
});

describe('a server that drains', () => {
  it('sends the whole of an answer that its caller reads slowly, and closes idle connections meanwhile', async () => {
    const big = Buffer.alloc(20_000_000, 'x');
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    const app: RequestListener = async (req, res) => {
      if (req.url === '/big') return void res.setHeader('content-length', big.length).end(big);
      isAsked();
      await released;
      res.end();
    };
    const server = await listen(app, '127.0.0.1', 0, { addressOf: () => null, onDrop: () => {} });
    const open = (path: string) => {
      const socket = connect(server.port, '127.0.0.1').on('error', () => {});
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      return socket;
    };
    const slow = open('/big');
    let read = 0;
    const [first] = await once(slow, 'data');
    slow.pause().on('data', (bytes) => (read += bytes.length));
    const other = open('/other').resume();
    await asked;
    const drained = server.drain(20);
    release();
    // Its connection was idle, and was closed.
    await once(other, 'close');
    slow.resume();
    await once(slow, 'close');
    await drained;
    const head = first.indexOf('\r\n\r\n') + 4;
    expect(first.length - head + read).to.equal(big.length);
  });

  it('answers a request that a proxy sends over an idle connection before it hears that the server stops', async () => {
    const app: RequestListener = (req, res) => void res.setHeader('connection', req.headers.connection ?? '').end();
    const server = await listen(app, '127.0.0.1', 0, { addressOf: () => null, onDrop: () => {} });
    const socket = connect(server.port, '127.0.0.1').on('error', () => {});
    const ask = async (connection: string) => {
      socket.write(`GET / HTTP/1.1\r\nHost: x\r\nConnection: ${connection}\r\n\r\n`);
      const [bytes] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      return String(bytes).split('\r\n')[0];
    };
    await ask('keep-alive');
    const drained = server.drain(300, 300);
    expect(await ask('close')).to.equal('HTTP/1.1 200 OK');
    await drained;
  });

  it('cuts off a caller that has asked for a tunnel behind a request which is never answered', async () => {
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
    const server = await listen(() => isAsked(), '127.0.0.1', 0, { addressOf: () => null, onDrop: () => {} });
    const socket = connect(server.port, '127.0.0.1').on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\nCONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    await asked;
    let isDrained = false;
    const drained = server.drain(0).then(() => (isDrained = true));
    try {
      await until(() => isDrained, 10, 'the server has drained');
    } finally {
      socket.destroy();
      await drained;
    }
  });
});
