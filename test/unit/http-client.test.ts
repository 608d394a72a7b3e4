import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { closeServer } from '../../src/base/close-server.ts';
import { Refusal } from '../../src/base/errors.ts';
import { hasBrokenOff, ProxyRefusal, postJson, sendRequest } from '../../src/base/http-client.ts';
import { readBody } from '../../src/base/read-body.ts';
import { listenAt, type ServerAddress } from '../../src/base/server-address.ts';
import { aFolder } from '../support/redis.ts';
import { startSilentPort } from '../support/silent-port.ts';

const signal = new AbortController().signal;

describe('the HTTP client', () => {
  const servers: Server[] = [];
  const serve = async (answer: RequestListener, at: ServerAddress = { host: '127.0.0.1', port: 0 }) => {
    const server = createServer(answer);
    servers.push(server);
    const port = await listenAt(server, at);
    return 'path' in at ? at : { ...at, port };
  };
  const get = (server: ServerAddress, more: object = {}) =>
    sendRequest({ to: { server, path: '/x' }, method: 'GET', signal, maxAnswerBytes: 10, ...more });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => closeServer(server)));
  });

  it('reads the answer of a server on a port and on a socket', async () => {
    const { folder, remove } = aFolder();
    for (const at of [{ host: '127.0.0.1', port: 0 }, { path: `${folder}/s` }]) {
      const server = await serve((req, res) => res.writeHead(201).end(req.url), at);
      const { status, text } = await get(server);
      expect([status, text]).to.deep.equal([201, '/x']);
    }
    remove();
  });

  it('throws when the answer is longer than its limit, unless the status alone counts', async () => {
    const server = await serve((_, res) => res.end('12345678901'));
    expect(await get(server).catch(String)).to.equal('Error: the answer is too large');
    expect(await get(server, { ignoresBody: true })).to.include({ status: 200, text: '' });
  });

  it('throws when nothing moves on the connection for the idle time', async () => {
    const server = await serve(() => {});
    expect(await get(server, { idleMs: 30 }).catch(String)).to.equal('Error: nothing was heard for too long');
  });

  it('throws when the signal fires', async () => {
    const server = await serve(() => {});
    const late = await get(server, { signal: AbortSignal.timeout(30) }).catch((error) => error.name);
    expect(late).to.equal('AbortError');
  });

  it('prefers the answer of a server that stops reading to the broken pipe', async () => {
    const server = await serve((_, res) => res.writeHead(413).end('too big', () => res.socket?.destroySoon()));
    const endless = () =>
      Readable.from(
        (function* () {
          for (let piece = 0; piece < 4096; piece++) yield Buffer.alloc(65_536);
        })(),
        { objectMode: false },
      );
    const sent = { method: 'PUT', headers: { 'content-length': String(2 ** 28) }, body: endless() } as const;
    expect(await get(server, sent)).to.include({ status: 413 });
  });

  it('throws a proxy refusal for the verdict of the egress proxy about an http and an https URL', async () => {
    const proxy = await serve((_, res) => res.writeHead(403, { 'x-egress-verdict': 'refused_address' }).end());
    servers[0]?.on('connect', (_, socket) => socket.end('HTTP/1.1 403 x\r\nx-egress-verdict: refused_address\r\n\r\n'));
    for (const scheme of ['http', 'https']) {
      const refusal = await get(proxy, { to: new URL(`${scheme}://a.test/`), proxy }).catch((error) => error);
      expect(refusal).to.be.instanceOf(ProxyRefusal).and.include({ status: 403, verdict: 'refused_address' });
    }
  });

  it('refuses with unavailable when nothing listens there, and not when the server breaks off', async () => {
    const away = await postJson({ path: '/nowhere' }, '/', {}, signal).catch((error) => error);
    expect(away).to.be.instanceOf(Refusal).and.include({ code: 'unavailable' });
    const server = await serve((req) => req.socket.resetAndDestroy());
    const broken = await postJson(server, '/', {}, signal).catch((error) => error);
    expect([broken instanceof Refusal, hasBrokenOff(broken)]).to.deep.equal([false, true]);
  });

  it('refuses with unavailable when the packets of a connection are swallowed, and does not wait for the end of the call', async () => {
    const silent = await startSilentPort();
    const { hostname, port } = new URL(silent.url);
    const server = { host: hostname, port: Number(port) };
    const error = await postJson(server, '/', {}, AbortSignal.timeout(60_000)).catch((error) => error);
    await silent.stop();
    expect([error.code, error.cause?.message]).to.deep.equal(['unavailable', 'no connection in time']);
  });

  it('gives a connection its time after the look-up of a name, in which one lost packet takes 5 s', async () => {
    const server = await serve((_, res) => res.end('{}'));
    const { lookup } = dns;
    const late = (...asked: Parameters<typeof lookup>) => setTimeout(() => lookup(...asked), 5_100);
    Object.assign(dns, { lookup: late });
    try {
      const answer = await postJson({ ...server, host: 'localhost' }, '/', {}, signal);
      expect(answer.text).to.equal('{}');
    } finally {
      Object.assign(dns, { lookup });
    }
  });

  it('posts JSON with its length', async () => {
    const server = await serve(async (req, res) => {
      const { 'content-type': type, 'content-length': length } = req.headers;
      res.end(`${type} ${length} ${await readBody(req, 100)}`);
    });
    expect((await postJson(server, '/', { a: 'ü' }, signal)).text).to.equal('application/json 10 {"a":"ü"}');
  });
});

describe('a bounded body', () => {
  it('is returned whole up to its limit, and is null above it', async () => {
    const stream = () => Readable.from([Buffer.from('ab'), Buffer.from('cd')]);
    expect(String(await readBody(stream(), 4))).to.equal('abcd');
    const cut = stream();
    expect(await readBody(cut, 3)).to.equal(null);
    expect(cut.destroyed).to.equal(true);
  });
});

describe('an HTTP server that closes', () => {
  it('lets a request under way end within the drain time, and cuts it off after that', async () => {
    for (const [drainMs, answered] of [
      [5000, 'fulfilled'],
      [20, 'rejected'],
    ] as const) {
      const begun = Promise.withResolvers<void>();
      const server = createServer((_, res) => {
        begun.resolve();
        setTimeout(() => res.end('late'), drainMs === 20 ? 60_000 : 50).unref();
      });
      const port = await listenAt(server, { host: '127.0.0.1', port: 0 });
      const asked = sendRequest({
        to: new URL(`http://127.0.0.1:${port}/`),
        method: 'GET',
        signal,
        maxAnswerBytes: 10,
      });
      const settled = Promise.allSettled([asked]);
      await begun.promise;
      await closeServer(server, drainMs);
      expect((await settled)[0].status).to.equal(answered);
    }
  });

  it('reports a taken address instead of listening', async () => {
    const first = createTcpServer();
    const port = await listenAt(first, { host: '127.0.0.1', port: 0 });
    const taken = await listenAt(createTcpServer(), { host: '127.0.0.1', port }).catch((error) => error.code);
    expect(taken).to.equal('EADDRINUSE');
    first.close();
    await once(first, 'close');
  });
});
