import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { mock } from 'node:test';
import { expect } from 'chai';
import { listen } from '../../src/api/http-server.ts';
import { closeUnread, type UnreadLimits } from '../../src/api/unread-answers.ts';
import { until } from '../support/until.ts';

/** More than the kernel takes over for both sides. */
const big = Buffer.alloc(20_000_000, 'x');
const piece = big.subarray(0, 50_000);
const usual = { unreadMs: 300, checkMs: 15, maxBytesOfAddress: 100_000_000 };

describe('an answer of which its caller reads nothing', () => {
  let server: Server;
  let dropped: string[];
  const sockets: Socket[] = [];

  const start = async (app: RequestListener, limits: UnreadLimits) => {
    dropped = [];
    server = createServer(app);
    closeUnread(server, limits, { addressOf: () => 'caller', onDrop: (address) => dropped.push(address) });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  };
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  const ask = (port = (server.address() as AddressInfo).port) => {
    const socket = connect(port, '127.0.0.1')
      .on('error', () => {})
      .pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    sockets.push(socket);
    return socket;
  };
  const count = () => new Promise<number>((resolve) => server.getConnections((_, open) => resolve(open)));
  const whole: RequestListener = (_req, res) => void res.end(big);
  const inPieces: RequestListener = (_req, res) =>
    void pipeline(Readable.from(Array(big.length / piece.length).fill(piece)), res).catch(() => {
      // The connection is closed before all of it is read.
    });

  for (const [title, app] of [
    ['that was written at once', whole],
    ['that is written in pieces', inPieces],
  ] as const) {
    it(`closes its connection after the time limit, with one ${title}`, async () => {
      await start(app, usual);
      const began = performance.now();
      ask();
      await until(async () => (await count()) === 1, 5, 'it is connected');
      await until(async () => (await count()) === 0, 10, 'it is closed');
      expect(performance.now() - began).to.be.at.least(usual.unreadMs);
      expect(dropped).to.deep.equal([]);
    });
  }

  it('closes its connection at the first look after the time limit, and no sooner', () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      server = createServer();
      closeUnread(server, { ...usual, unreadMs: 120_000, checkMs: 2_000 }, { addressOf: () => null, onDrop: () => {} });
      const held = Object.defineProperties(new Socket(), { writableLength: { value: 1 }, bytesWritten: { value: 1 } });
      server.emit('connection', held);
      mock.timers.tick(120_000);
      expect(held.destroyed).to.equal(false);
      mock.timers.tick(2_000);
      expect(held.destroyed).to.equal(true);
    } finally {
      mock.timers.reset();
    }
  });

  it('leaves alone one of which a part is read within each time limit', async () => {
    await start(inPieces, { ...usual, unreadMs: 2000 });
    const slow = ask();
    let read = 0;
    let isClosed = false;
    slow.once('close', () => {
      isClosed = true;
    });
    slow.on('data', (data) => {
      read += data.length;
      slow.pause();
      setTimeout(() => slow.resume(), 10);
    });
    slow.resume();
    await until(() => read > big.length || isClosed, 60, 'all of it is read');
    expect([read > big.length, isClosed]).to.deep.equal([true, false]);
  });

  it('leaves alone one whose caller reads on after this process was halted for the time limit', async () => {
    await start(inPieces, { ...usual, unreadMs: 2000 });
    const connected = once(server, 'connection');
    const slow = ask();
    const [held]: Socket[] = await connected;
    let [read, isClosed, taken] = [0, false, 0];
    slow.once('close', () => (isClosed = true));
    const isFull = () => {
      const before = taken;
      taken = held!.bytesWritten - held!.writableLength;
      return taken > 0 && taken === before;
    };
    await until(isFull, 5, 'the kernel takes no more');
    slow.on('data', (data) => (read += data.length)).pause();
    // After an immediate, timers fire before anything is read.
    setImmediate(() => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500);
      slow.resume();
    });
    await until(() => read > big.length || isClosed, 60, 'all of it is read');
    expect([read > big.length, isClosed]).to.deep.equal([true, false]);
  });

  it('costs an address the oldest of its connections when they keep too much', async () => {
    await start(whole, { unreadMs: 3_600_000, checkMs: 15, maxBytesOfAddress: 2.5 * big.length });
    const closed: number[] = [];
    for (const n of [0, 1, 2, 3]) {
      const socket = ask();
      socket.once('close', () => closed.push(n));
      await until(async () => (await count()) + dropped.length === n + 1, 5, 'it is connected');
      await until(() => dropped.length === Math.max(0, n - 1), 5, 'the oldest one is closed');
    }
    for (const socket of sockets) socket.resume();
    await until(() => closed.length === 2, 10, 'two hear that they are closed');
    expect([closed.toSorted(), await count(), dropped]).to.deep.equal([[0, 1], 2, ['caller', 'caller']]);
  });

  it('costs an address none of 110 connections over which it fetches files slowly, before the time limit', async () => {
    await start(inPieces, usual);
    const timeouts = { headersMs: 10_000, bodyMs: 10_000, wholeBodyMs: 10_000, keepAliveMs: 10_000 };
    let ended = 0;
    const app: RequestListener = (req, res) => {
      res.once('close', () => ended++);
      inPieces(req, res);
    };
    const limit = { addressOf: () => 'caller', onDrop: (address: string) => dropped.push(address) };
    const { port, drain } = await listen(app, '127.0.0.1', 0, limit, { ...timeouts, unreadMs: 3000, checkMs: 15 });
    try {
      for (let n = 0; n < 110; n++) ask(port);
      await until(() => ended === 110, 20, 'the time limit ends all of them');
      expect(dropped).to.deep.equal([]);
    } finally {
      await drain(0);
    }
  });
});
