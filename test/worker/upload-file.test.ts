import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { address as kind } from '../../src/base/settings/kinds.ts';
import { chooseWall } from '../../src/worker/choose-sandbox.ts';
import { startRelay } from '../../src/worker/egress-forwarder.ts';
import { openGateway } from '../../src/worker/gateway-client.ts';
import { type Frame, makeFrameReader } from '../../src/worker/inspector-frames.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import type { Wall } from '../../src/worker/sandbox-command.ts';
import { readPermit, readSpec } from '../../src/worker/spec.ts';
import { startGateway, type TestGateway, token } from '../support/gateway.ts';
import { walls } from '../support/place.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { processesOf, programs, scripted } from '../support/worker.ts';

describe('An address', () => {
  const rows: readonly [string, unknown][] = [
    ['unix:/run/x', { path: '/run/x' }],
    ['http://egress:4750', { host: 'egress', port: 4750 }],
    ['http://[::1]:80', { host: '::1', port: 80 }],
    ['unix:x', undefined],
    ['https://a.example', undefined],
    ['http://u:p@a.example', undefined],
    ['http://a.example/x', undefined],
    ['', undefined],
  ];
  for (const [text, address] of rows) {
    it(`${JSON.stringify(text)} is ${JSON.stringify(address)}`, () => expect(kind.read(text)).to.deep.equal(address));
  }
});

describe('What the gateway says', () => {
  const limits = { file_bytes: 1, seconds: 2, inspect_seconds: 3 };
  const spec = {
    job: 'j',
    attempt: 1,
    endpoint: 'audio',
    args: { query: 'q' },
    limits,
    part_bytes: null,
    cookies: null,
  };

  it('is understood when it is a spec', () => {
    const order = { endpoint: 'audio', args: { query: 'q' } };
    const read = {
      job: 'j',
      attempt: 1,
      order,
      fileBytes: 1,
      seconds: 2,
      inspectSeconds: 3,
      partBytes: null,
      cookies: null,
    };
    expect(readSpec(spec)).to.deep.equal(read);
    expect(readSpec({ ...spec, part_bytes: 4 })).to.deep.equal({ ...read, partBytes: 4 });
    expect(readSpec({ ...spec, cookies: 'a' })).to.deep.equal({ ...read, cookies: 'a' });
  });

  const wrong: readonly object[] = [
    { job: 1 },
    { attempt: 0 },
    { endpoint: 'other' },
    { args: null },
    { limits: {} },
    { limits: { ...limits, seconds: -1 } },
    { part_bytes: 0 },
    { cookies: 1 },
  ];
  for (const change of wrong) {
    it(`is no spec with ${JSON.stringify(change)}`, () => expect(readSpec({ ...spec, ...change })).to.equal(null));
  }

  it('is no permit when a part leads elsewhere than to a web address', () => {
    const part = { url: 'https://store.example/x', headers: { a: 'b' }, start: 0, bytes: 5 };
    const permit = { key: 'k', parts: [part], through_egress: true };
    expect(readPermit(permit)).to.deep.equal({ key: 'k', parts: [part], throughEgress: true });
    expect(readPermit({ key: 'k', parts: null })).to.deep.equal({ key: 'k', parts: null, throughEgress: false });
    for (const change of [{ url: 'file:///etc/passwd' }, { start: -1 }, { start: undefined }, { bytes: 0 }]) {
      expect(readPermit({ ...permit, parts: [{ ...part, ...change }] })).to.equal(null);
    }
    expect(readPermit({ parts: [] })).to.equal(null);
    expect(readPermit({ key: 'k' })).to.equal(null);
  });
});

describe('Frames of the warm parent', () => {
  const whole = Buffer.from('ready\n1 out 3\na\nb2 end 0\n1 out 2\n\u00e41 end -9\n');
  for (const size of [1, 2, 7, 1000]) {
    it(`are read from pieces of ${size} bytes`, () => {
      const told: Frame[] = [];
      let ready = 0;
      const read = makeFrameReader(
        () => {
          ready++;
        },
        (frame) => told.push(frame),
      );
      for (let at = 0; at < whole.length; at += size) read(whole.subarray(at, at + size));
      const spoken = told.map((frame) => `${frame.id} ${frame.is === 'out' ? frame.bytes.toString() : frame.code}`);
      expect({ ready, spoken }).to.deep.equal({ ready: 1, spoken: ['1 a\nb', '2 0', '1 \u00e4', '1 -9'] });
    });
  }
});

describe('The wall', function () {
  this.timeout(120_000);

  it('is none when the sandbox is off, without a warning', async () => {
    expect(await chooseWall('off', tmpdir(), (text) => expect.fail(text))).to.equal('none');
  });

  it('is required or warned about where bubblewrap is missing', async () => {
    const { PATH } = process.env;
    process.env.PATH = '/nowhere';
    const warnings: string[] = [];
    try {
      expect(await chooseWall('auto', tmpdir(), (text) => warnings.push(text))).to.equal('none');
      const thrown = await chooseWall('required', tmpdir(), () => undefined).catch((error: Error) => error.message);
      expect(thrown).to.match(/^TRAWL_SANDBOX is required, but bubblewrap does not work here/);
    } finally {
      process.env.PATH = PATH;
    }
    expect(warnings).to.have.lengthOf(1);
  });

  it('leaves nothing beside the folder it is tried around, which a kill in the middle would not remove', async () => {
    const { folder, remove } = aFolder();
    const before = readdirSync(tmpdir());
    const chosen = chooseWall('auto', folder, () => undefined);
    while (await Promise.race([chosen.then(() => false), nextTurn(true)])) {
      expect(readdirSync(tmpdir())).to.deep.equal(before);
    }
    expect(readdirSync(folder)).to.deep.equal([]);
    remove();
  });
});

describe('The way out of one worker', () => {
  it('takes so many connections that the others have room', async () => {
    let taken = 0;
    const egress = createServer(() => {
      taken++;
    }).listen(0, '127.0.0.1');
    await once(egress, 'listening');
    const relay = await startRelay({ host: '127.0.0.1', port: (egress.address() as AddressInfo).port }, null);
    const sockets = Array.from({ length: 200 }, () => connect(relay.port, '127.0.0.1').on('error', () => undefined));
    await until(() => sockets.filter(({ destroyed }) => destroyed).length === 72, 5, '72 are sent away');
    await until(() => taken === 128, 5, '128 are taken');
    for (const socket of sockets) socket.destroy();
    await relay.close();
    egress.close();
  });
});

describe('An attempt', function () {
  this.timeout(120_000);

  /** Runs a script as an attempt in this process, with little memory and patience. */
  async function attempt(script: string, wall: Wall, look: (gateway: TestGateway) => void = () => undefined) {
    const { folder, remove } = aFolder();
    const order = { endpoint: 'video' as const, args: { query: 'http://a.example/', script } };
    const server = await startGateway({ folder, order });
    const { signal } = new AbortController();
    const gateway = openGateway({ address: server.address, token: () => token, patienceSeconds: 1, signal });
    const root = join(folder, 'work');
    const attempt = runAttempt({
      ...{ gateway, media: scripted, programs, root, wall, plugins: [], log: aLog().log, signal },
      ...{ egress: { host: '127.0.0.1', port: 9 }, memoryBytes: 2 ** 28, slowBytes: 1, slowSeconds: 60 },
      patienceSeconds: 1,
    });
    look(server);
    const outcome = await attempt;
    expect(readdirSync(root)).to.deep.equal([]);
    await until(() => processesOf(root).length === 0, 2, 'no process is left');
    await server.stop();
    remove();
    return outcome;
  }

  it('is interrupted and leaves nothing when its gateway is gone', async () => {
    const leave = (gateway: TestGateway) => setTimeout(() => void gateway.stop(), 1000);
    const outcome = await attempt('sleep 60', 'none', leave);
    expect(outcome).to.deep.equal({ is: 'interrupted', reason: 'The gateway could not be reached' });
  });

  for (const wall of walls) {
    it(`fails when its children together hold more memory than they may (${wall})`, async () => {
      // Each of them keeps a line without an end, and stays below the limit of one process.
      const hogs = 'for hog in 1 2 3 4; do (head -c 120M /dev/zero; sleep 60) | tail & done; wait';
      expect(await attempt(hogs, wall)).to.deep.equal({ is: 'failed', code: 'file_damaged' });
    });
  }
});
