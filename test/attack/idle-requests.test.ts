import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { freePort } from '../support/free-port.ts';
import { makeService, type Service } from '../support/service.ts';
import { until } from '../support/until.ts';

/** One more than the API takes in hand. */
const many = 1001;
const maxPending = 100;
const maxIdle = 1000;
const attacker = '127.0.0.2';
const head =
  'POST /v1/video/download HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n';
/** Its time limit is longer than that of a body. */
const begun = head.slice(0, 60);

/** Connections from one address. */
interface Crowd {
  readonly sockets: readonly Socket[];
  /** First bytes that the server said over each. */
  readonly said: readonly string[];
  readonly openCount: () => number;
  readonly leave: () => void;
}

/** Opens connections from one address one after the other, and sends these bytes over each. */
async function openCrowd(url: string, address: string, count: number, bytes: string): Promise<Crowd> {
  const { hostname: host, port } = new URL(url);
  const sockets: Socket[] = [];
  const said: string[] = [];
  for (let n = 0; n < count; n++) {
    const socket = connect({ host, port: Number(port), localAddress: address });
    sockets.push(socket);
    socket.on('data', (data) => {
      said[n] ??= String(data);
    });
    // The server may close it before it has read all.
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    socket.write(bytes);
  }
  return {
    sockets,
    said,
    openCount: () => sockets.filter(({ readyState }) => readyState === 'open').length,
    leave: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Status of a request from an address, which is not kept alive; `null` when its connection is closed without an answer. */
function statusOf(url: string, address: string, key: string, path = '/v1/usage'): Promise<number | null> {
  return new Promise((resolve) => {
    const asked = request(url + path, { localAddress: address, headers: { 'x-api-key': key }, agent: false });
    asked.once('response', (answer) => resolve(answer.resume().statusCode ?? null)).once('error', () => resolve(null));
    asked.end();
  });
}

describe('1,001 requests that never end', () => {
  let service: Service;
  let probe: string;
  let key: string;
  before(async () => {
    const port = await freePort();
    probe = `http://127.0.0.1:${port}`;
    service = makeService({ TRAWL_PROBE_PORT: String(port), TRAWL_WORKERS: '1' });
    await service.start();
    ({ key } = await service.aCustomer());
    const isReady = async () => (await fetch(`${probe}/readyz`)).status === 200;
    await until(isReady, 20, 'it is ready');
  });
  after(() => service.close());

  const endings: [title: string, bytes: string][] = [
    ['send nothing', ''],
    ['stop within the headers', begun],
    ['send no body', head],
    ['stop within the body', `${head}{"query":`],
  ];
  for (const [title, bytes] of endings) {
    for (const [n, address] of [attacker, '127.0.0.1'].entries()) {
      it(`1,001 requests that ${title} leave a good key answered 20 of 20 times ${n === 0 ? 'at another address' : 'at their own address'}, and /readyz true`, async () => {
        const { url } = service.up();
        const crowd = await openCrowd(url, address, many, bytes);
        try {
          const statuses = [];
          for (let times = 0; times < 20; times++) statuses.push(await statusOf(url, '127.0.0.1', key));
          expect(statuses).to.deep.equal(Array(20).fill(200));
          expect((await fetch(`${probe}/readyz`)).status).to.equal(200);
        } finally {
          crowd.leave();
        }
      });
    }
  }
});

describe('connections without a complete request', () => {
  let api: TestApi;
  let caller: ApiCaller;
  let crowds: Crowd[] = [];
  beforeEach(() => {
    crowds = [];
  });
  afterEach(async () => {
    for (const crowd of crowds) crowd.leave();
    await api.stop();
  });

  const start = async (env: Record<string, string>) => {
    api = await startApi(env);
    caller = await api.addCaller();
  };
  const crowdOf = async (address: string, count: number, bytes: string) => {
    const crowd = await openCrowd(api.url, address, count, bytes);
    crowds.push(crowd);
    return crowd;
  };
  const dropped = async () => (await api.metrics.connections_dropped_total.get()).values[0]?.value ?? 0;

  it('above 100 of an address cost it the oldest, a new one is taken, and a metric and one warning tell of it', async () => {
    await start({});
    const crowd = await crowdOf(attacker, maxPending + 50, begun);
    await until(() => crowd.openCount() === maxPending, 10, 'the oldest are closed');
    expect(crowd.sockets.map(({ readyState }) => readyState === 'open')).to.deep.equal([
      ...Array(50).fill(false),
      ...Array(maxPending).fill(true),
    ]);
    expect(await dropped()).to.equal(50);
    expect(await statusOf(api.url, attacker, caller.key)).to.equal(200);
    const warnings = api.lines.filter((line) => line.includes('connections without a complete request'));
    expect(warnings.map((line) => JSON.parse(line))).to.have.length(1);
    expect(JSON.parse(warnings[0] ?? '{}')).to.include({ level: 'warn', address: attacker });
  });

  it('are counted again after a complete one over the same connection', async () => {
    await start({});
    const whole = `GET /v1/usage HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`;
    await crowdOf(attacker, maxPending + 20, whole + head);
    await until(async () => (await dropped()) === 20, 10, 'the oldest are closed');
  });

  it('of an address that only keeps connections open between complete requests are all kept', async () => {
    await start({});
    const whole = `GET /v1/usage HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`;
    const kept = await crowdOf('127.0.0.3', maxPending + 50, whole);
    const crowd = await crowdOf(attacker, maxPending + 50, begun);
    await until(() => crowd.openCount() === maxPending, 10, 'those of the other address are closed');
    expect(kept.openCount()).to.equal(maxPending + 50);
  });

  it('above 1,000 of an address that are idle after an answer cost it the oldest of them', async () => {
    await start({});
    const whole = `GET /v1/usage HTTP/1.1\r\nHost: x\r\nx-api-key: ${caller.key}\r\n\r\n`;
    const wereAnswered = ({ said }: Crowd) => said.filter((text) => text.startsWith('HTTP/1.1 200 ')).length;
    const oldest = await crowdOf('127.0.0.3', 20, whole);
    // They are the oldest once they are idle: answers come in any order.
    await until(() => wereAnswered(oldest) === 20, 10, 'the oldest are answered');
    const crowd = await crowdOf('127.0.0.3', maxIdle, whole);
    await until(() => oldest.openCount() === 0, 20, 'the oldest are closed');
    await until(() => wereAnswered(crowd) === maxIdle, 10, 'the others are answered');
    expect(crowd.openCount()).to.equal(maxIdle);
    expect(await statusOf(api.url, '127.0.0.3', caller.key)).to.equal(200);
  });

  it('of a trusted proxy have no limit', async () => {
    await start({ TRAWL_TRUSTED_PROXIES: '127.0.0.3/32' });
    const proxy = await crowdOf('127.0.0.3', maxPending + 50, begun);
    const crowd = await crowdOf(attacker, maxPending + 50, begun);
    await until(() => crowd.openCount() === maxPending, 10, 'those of the other address are closed');
    expect(proxy.openCount()).to.equal(maxPending + 50);
  });

  it('D10: a blocked address is refused before its body, and a declared length above the limit before that', async () => {
    await start({ TRAWL_AUTH_FAILURES: '3' });
    for (let n = 0; n < 3; n++) expect(await statusOf(api.url, attacker, 'wrong')).to.equal(401);
    const answerTo = async (bytes: string, address = attacker) => {
      const { said } = await crowdOf(address, 1, bytes);
      await until(() => said[0] !== undefined, 4, 'an answer although the body does not come');
      return said[0]?.slice(9, 12);
    };
    expect(await answerTo(head)).to.equal('403');
    expect(await answerTo(head.replace(': 100', ': 20000'))).to.equal('413');
    expect(await answerTo(head.replace(': 100', ': 20000'), '127.0.0.1')).to.equal('413');
  });
});
