import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { ProxyLimits } from '../../src/egress/proxy.ts';
import {
  ask,
  dialProxy,
  openTunnel,
  startEgress,
  startRaw,
  startSource,
  type TestEgress,
  type TestSource,
  talk,
} from '../support/egress.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

const chunk = Buffer.alloc(65_536, 'x');
const head = 'HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n';

/** Sends without end, as fast as it is taken, once it has been asked something. */
function pour(socket: Socket): void {
  socket.once('data', () => {
    socket.write(head);
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more);
    more();
  });
}

describe('the limits of the proxy', () => {
  let egress: TestEgress;
  let source: TestSource;
  const start = async (limits: Partial<ProxyLimits>, greet: (socket: Socket) => void) => {
    source = await startRaw(greet);
    egress = await startEgress({ limits });
  };
  afterEach(async () => {
    await egress.close();
    await until(() => source.sockets.every(({ destroyed }) => destroyed), 2, 'the source is left alone');
    await source.close();
  });
  /** Asks in both ways, and waits until both are over. */
  const fetchBoth = async () => {
    const { socket } = await openTunnel(egress.address, source.authority);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    const plain = request({ ...egress.address, path: source.url, agent: false }).end();
    plain.on('error', () => undefined);
    let bytes = 0;
    socket.on('data', (data) => {
      bytes += data.length;
    });
    const [answer] = await once(plain, 'response');
    answer
      .on('error', () => undefined)
      .on('data', (data: Buffer) => {
        bytes += data.length;
      });
    await until(() => socket.destroyed && answer.destroyed, 4, 'both are over');
    return { bytes, complete: answer.complete };
  };

  it('a connection that carries more bytes than its limit is cut', async () => {
    await start({ bytes: 1_000_000 }, pour);
    expect((await fetchBoth()).complete).to.equal(false);
    expect(await egress.counts()).to.deep.equal({ limited: 2 });
    expect(egress.lines.map(({ cut, bytes }) => [cut, Number(bytes) > 1_000_000])).to.deep.equal([
      ['bytes', true],
      ['bytes', true],
    ]);
  });

  it('a connection that is idle for its limit is cut', async () => {
    await start({ idleSeconds: 0.2 }, (socket) => socket.once('data', () => socket.write(`${head}x`)));
    const startMs = performance.now();
    expect((await fetchBoth()).complete).to.equal(false);
    expect(performance.now() - startMs).to.be.at.least(200);
    expect(egress.lines.map(({ cut }) => cut)).to.deep.equal(['idle', 'idle']);
  });

  it('a connection that lasts longer than its limit is cut although bytes move', async () => {
    await start({ totalSeconds: 0.3 }, (socket) => {
      socket.write(head);
      const drip = setInterval(() => socket.write('x'), 20);
      socket.once('close', () => clearInterval(drip)).resume();
    });
    expect((await fetchBoth()).complete).to.equal(false);
    expect(egress.lines.map(({ cut }) => cut)).to.deep.equal(['time', 'time']);
  });

  it('a source that never answers a plain request gives its client 504 failed_answer', async () => {
    await start({ idleSeconds: 0.2 }, (socket) => socket.resume());
    const answer = await ask(egress.address, source.url);
    expect([answer.status, answer.verdict]).to.deep.equal([504, 'failed_answer']);
    expect(await egress.counts()).to.deep.equal({ failed_answer: 1 });
  });

  it('a source that sends only preliminary answers gives its client 503 limited after the time limit', async () => {
    await start({ totalSeconds: 0.3 }, (socket) => {
      const drip = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 20);
      socket.once('close', () => clearInterval(drip)).resume();
    });
    const answer = await ask(egress.address, source.url);
    expect([answer.status, answer.verdict]).to.deep.equal([503, 'limited']);
  });

  it('a client that stops reading stops its source, and is cut once it is idle for its limit', async () => {
    await start({ idleSeconds: 0.6 }, pour);
    const { socket } = await openTunnel(egress.address, source.authority);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    socket.pause();
    const plain = request({ ...egress.address, path: source.url, agent: false }).end();
    plain.on('error', () => undefined);
    const [answer] = await once(plain, 'response');
    answer.on('error', () => undefined).pause();
    const taken = () => source.sockets.map(({ bytesWritten, writableLength }) => bytesWritten - writableLength);
    let last = -1;
    await until(
      async () => {
        const now = taken().reduce((sum, bytes) => sum + bytes, 0);
        const steady = now === last && now > 0;
        last = now;
        await pause(100);
        return steady;
      },
      4,
      'the sources wait',
    );
    // The kernel buffers this much for four connections on the loopback address.
    for (const bytes of taken()) expect(bytes).to.be.below(24_000_000);
    await until(() => egress.lines.length === 2, 3, 'both are cut');
    expect(egress.lines.map(({ cut }) => cut)).to.deep.equal(['idle', 'idle']);
  });

  it('a half-closed connection is cut when its other side is idle for the limit', async () => {
    await start({ idleSeconds: 0.3 }, (socket) => socket.end('bye'));
    const socket = await dialProxy(egress.address);
    socket.write(`CONNECT ${source.authority} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await once(socket.resume(), 'end');
    expect(egress.lines).to.have.length(0);
    await until(() => egress.lines.length === 1, 2, 'it is cut');
    socket.destroy();
    expect(egress.lines.map(({ cut, verdict }) => [cut, verdict])).to.deep.equal([['idle', 'limited']]);
  });

  it('a client at its limit of connections gets 503 limited until one of them closes', async () => {
    await start({ connectionsPerClient: 3 }, (socket) => socket.resume());
    const tunnels = await Promise.all([1, 2, 3].map(() => openTunnel(egress.address, source.authority)));
    const fourth = await openTunnel(egress.address, source.authority);
    expect([fourth.status, fourth.verdict]).to.deep.equal([503, 'limited']);
    fourth.socket.destroy();
    const plain = await ask(egress.address, source.url);
    expect([plain.status, plain.verdict]).to.deep.equal([503, 'limited']);
    expect(source.sockets).to.have.length(3);
    tunnels[0]!.socket.destroy();
    await until(
      async () => {
        const { status, socket } = await openTunnel(egress.address, source.authority);
        if (status !== 200) socket.destroy();
        return status === 200;
      },
      2,
      'the place is free again',
    );
  });

  it('a connection that has ended or was refused does not count towards the limit of its client', async () => {
    await start({ connectionsPerClient: 1 }, (socket) => socket.resume().end('HTTP/1.1 204 No Content\r\n\r\n'));
    for (const _ of [1, 2, 3]) expect((await ask(egress.address, source.url)).status).to.equal(204);
    const refused = await dialProxy(egress.address);
    refused.write('CONNECT 127.0.0.3:80 HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => egress.lines.length === 4, 1, 'it is refused');
    await until(async () => (await ask(egress.address, source.url)).status === 204, 3, 'the place is free again');
    refused.destroy();
  });

  it('a client at its limit of connections does not limit a client of another address', async () => {
    await start({ connectionsPerClient: 1 }, (socket) => socket.resume());
    await openTunnel(egress.address, source.authority);
    const from = (localAddress: string) =>
      once(request({ ...egress.address, localAddress, method: 'CONNECT', path: source.authority }).end(), 'connect');
    const [own] = await from('127.0.0.1');
    const [other, socket] = await from('127.0.0.77');
    expect([own.statusCode, other.statusCode]).to.deep.equal([503, 200]);
    socket.destroy();
  });

  it('clients of one UNIX socket have no limit per client', async () => {
    const { folder, remove } = aFolder();
    source = await startRaw((socket) => socket.resume());
    egress = await startEgress({ limits: { connectionsPerClient: 1 }, address: { path: join(folder, 'egress') } });
    const tunnels = await Promise.all(Array.from({ length: 20 }, () => openTunnel(egress.address, source.authority)));
    expect(new Set(tunnels.map(({ status }) => status))).to.deep.equal(new Set([200]));
    for (const { socket } of tunnels) socket.destroy();
    remove();
  });

  it('connections far above the limit of a client are closed without an answer', async () => {
    await start({ connectionsPerClient: 1 }, (socket) => socket.resume());
    const idle = await Promise.all(Array.from({ length: 17 }, () => dialProxy(egress.address)));
    expect(await talk(egress.address, 'GET / HTTP/1.1\r\n\r\n')).to.equal('');
    for (const socket of idle) socket.destroy();
  });

  it('connections above the limit of all clients together are closed without an answer', async () => {
    await start({ connections: 2 }, (socket) => socket.resume());
    const idle = [await dialProxy(egress.address), await dialProxy(egress.address)];
    expect(await talk(egress.address, 'GET / HTTP/1.1\r\n\r\n')).to.equal('');
    expect(await egress.counts()).to.deep.equal({ limited: 1 });
    for (const socket of idle) socket.destroy();
  });

  for (const [what, text] of [
    ['sends nothing', ''],
    ['begins a request and stops', `GET ${'http://127.0.0.2/'} HTTP/1.1\r\nHost:`],
  ] as const) {
    it(`a client that ${what} is answered 408`, async () => {
      await start({ headerSeconds: 0.3 }, (socket) => socket.resume());
      const said = await talk(egress.address, text);
      expect(said).to.match(/^HTTP\/1\.1 408 refused_request\r\nx-egress-verdict: refused_request\r\n/);
    });
  }

  it('a client that breaks off its request is not counted', async () => {
    await start({}, (socket) => socket.resume());
    for (const text of ['', 'GET http://127.0']) {
      const socket = await dialProxy(egress.address);
      socket.write(text, () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
    expect((await ask(egress.address, 'http://127.0.0.3/')).status).to.equal(403);
    expect(await egress.counts()).to.deep.equal({ refused_address: 1 });
  });

  it('a source that has not answered is disconnected when its client disconnects', async () => {
    await start({}, (socket) => socket.resume());
    const asked = request({ ...egress.address, path: source.url, agent: false }).end();
    asked.on('error', () => undefined);
    await until(() => source.sockets.length === 1, 1, 'the source is asked');
    asked.destroy();
    await until(() => source.sockets.every(({ destroyed }) => destroyed), 1, 'the source is left');
    expect(await egress.counts()).to.deep.equal({ open: 1 });
  });

  it('the sources of a killed client are disconnected at once', async () => {
    await start({}, pour);
    const code = `const socket = require('node:net').connect(${JSON.stringify(egress.address)});
      socket.write('CONNECT ${source.authority} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n');
      socket.once('data', () => console.log('some'));
      require('node:http').get({ ...${JSON.stringify(egress.address)}, path: '${source.url}' }, (answer) => answer.resume());`;
    const client = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(client.stdout, 'data');
    await until(() => source.sockets.length === 2, 2, 'both ways are open');
    client.kill('SIGKILL');
    await until(() => source.sockets.every(({ destroyed }) => destroyed), 1, 'the source is left');
    await until(() => egress.lines.length === 2, 1, 'both are over');
    expect(await egress.counts()).to.deep.equal({ open: 2 });
  });
});

describe('a large transfer', () => {
  it('of 50 MB through a plain request arrives whole', async () => {
    const length = 50_000_000;
    const source = await startSource((request, response) => {
      let got = 0;
      request.on('data', (data) => {
        got += data.length;
      });
      request.on('end', () => response.end(String(got)));
    });
    const egress = await startEgress();
    const asked = request({
      ...egress.address,
      method: 'PUT',
      path: source.url,
      headers: { 'content-length': length },
    });
    for (let sent = 0; sent < length; sent += chunk.length) {
      if (!asked.write(chunk.subarray(0, Math.min(chunk.length, length - sent)))) await once(asked, 'drain');
    }
    asked.end();
    const [answer] = await once(asked, 'response');
    const [text] = await once(answer.setEncoding('utf8'), 'data');
    expect(text).to.equal(String(length));
    await egress.close();
    await source.close();
  });
});
