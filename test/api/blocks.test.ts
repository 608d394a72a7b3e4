import { randomBytes } from 'node:crypto';
import { Agent, get } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { makeKey } from '../../src/model/api-key.ts';
import { listBlocks } from '../../src/store/access/list-blocks.ts';
import { readStrayProxy } from '../../src/store/access/stray-proxy.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { type ApiCaller, startApi, type TestApi } from '../support/api.ts';
import { expectRefused, film, keyedCalls } from '../support/calls.ts';
import { until } from '../support/until.ts';

const trusted = { TRAWL_TRUSTED_PROXIES: '127.0.0.1/32,10.0.0.0/8', TRAWL_AUTH_FAILURES: '3' };
const minute = 60_000;
const strayProxy = /is not in TRAWL_TRUSTED_PROXIES/;

/** One call with a key and an X-Forwarded-For, of usage unless told. */
const from = (api: TestApi, address: string | null, key: string, path = '/v1/usage', method = 'GET') =>
  api.call(method, path, { key, headers: address === null ? {} : { 'x-forwarded-for': address } });

async function fail(api: TestApi, address: string | null, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    expectRefused(await from(api, address, 'wrong'), 401, 'invalid_api_key', 'Invalid API Key');
  }
}

async function expectBlocked(api: TestApi, address: string | null, key: string, minutes: number): Promise<void> {
  const answer = await from(api, address, key);
  expectRefused(answer, 403, 'ip_blocked', 'IP temporarily blocked');
  expect(Number(answer.headers.get('retry-after'))).to.be.within(minutes * 60 - 30, minutes * 60);
}

const blocksOf = async (api: TestApi) => (await listBlocks(api.store)).map(({ address }) => address);

describe('blocked addresses', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi(trusted);
    caller = await api.addCaller();
  });
  after(() => api.stop());

  const status = async (address: string) => (await from(api, address, caller.key)).status;

  it('auth-6 error-403-blocked D38: the third failure in ten minutes blocks an address for 15 minutes, on every route with a key', async () => {
    await fail(api, '198.51.100.1', 2);
    expect(await status('198.51.100.1')).to.equal(200);
    await fail(api, '198.51.100.1', 1);
    await expectBlocked(api, '198.51.100.1', caller.key, 15);
    for (const { method, path } of keyedCalls) {
      for (const key of [caller.key, 'wrong']) {
        const answer = await from(api, '198.51.100.1', key, path, method);
        expect([answer.status, answer.json], `${method} ${path}`).to.deep.equal([
          403,
          { error: 'IP temporarily blocked' },
        ]);
      }
    }
    expect(await status('198.51.100.2')).to.equal(200);
    api.store.advance(15 * minute + 1);
    expect(await status('198.51.100.1')).to.equal(200);
  });

  it('D10: a blocked address is refused after a body that is too large, and before its key and its rate', async () => {
    await fail(api, '198.51.100.3', 3);
    const limited = await api.addCaller({ perMinute: 1 });
    for (let n = 0; n < 3; n++) await expectBlocked(api, '198.51.100.3', limited.key, 15);
    expect((await from(api, '198.51.100.4', limited.key)).status).to.equal(200);
    const big = await api.call('POST', '/v1/video/download', {
      body: { a: 'x'.repeat(17_000) },
      headers: { 'x-forwarded-for': '198.51.100.3' },
    });
    expectRefused(big, 413, 'payload_too_large', 'Payload Too Large');
  });

  it('D38: a connection that serves many callers blocks only the one who failed, and lets in nobody whose key was switched off', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    const ask = (key: string, address: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { 'x-api-key': key, 'x-forwarded-for': address };
        const request = get(`${api.url}/v1/usage`, { agent, headers }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode!));
        });
        request.on('socket', (socket) => sockets.add(socket)).on('error', reject);
      });
    const [one, other] = [await api.addCaller(), await api.addCaller()];
    const [failing, fine] = ['198.51.100.41', '198.51.100.42'];
    const askAll = async (asked: readonly (readonly [key: string, address: string])[]) => {
      const answers = [];
      for (const [key, address] of asked) answers.push(await ask(key, address));
      return answers;
    };
    try {
      const [wrong, right] = [
        ['wrong', failing],
        [one.key, fine],
      ] as const;
      expect(await askAll([wrong, right, wrong, wrong, right])).to.deep.equal([401, 200, 401, 401, 200]);
      expect(await askAll([[one.key, failing], right, [other.key, fine]])).to.deep.equal([403, 200, 200]);
      await setKey(api.store, other.account, `k${other.keyId}`, { active: false });
      expect(await askAll([[other.key, fine], right])).to.deep.equal([401, 200]);
      expect(sockets.size, 'connections').to.equal(1);
    } finally {
      agent.destroy();
    }
    const lines = async ({ account }: ApiCaller) =>
      (await readLines(api.store, account, 99)).map(({ ip, status: code }) => `${ip} ${code}`).sort();
    // The lines of each key are written apart.
    await until(async () => (await lines(one)).length === 4, 10, 'the calls of one key are in the request log');
    await until(async () => (await lines(other)).length === 2, 10, 'the calls of the other key are in the request log');
    expect(await lines(one)).to.deep.equal(Array(4).fill(`${fine} 200`));
    expect(await lines(other)).to.deep.equal([`${fine} 200`, `${fine} 401`]);
  });

  it('D38: what a page of another site has its visitors load blocks nobody, and tells nothing of a key', async () => {
    const load = (path: string, fetched: Record<string, string>) =>
      new Promise<number>((resolve, reject) => {
        const headers = { 'x-forwarded-for': '198.51.100.43', ...fetched };
        get(`${api.url}/v1/usage${path}`, { agent: false, headers }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode!));
        }).on('error', reject);
      });
    const bySite = (mode: string, dest: string) => ({
      ...{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': mode, 'sec-fetch-dest': dest },
    });
    const unknown = `?x_api_key=${makeKey('a'.repeat(12), randomBytes(32))}`;
    const prefetch = { ...bySite('navigate', 'document'), 'sec-purpose': 'prefetch' };
    const embeds = [bySite('no-cors', 'image'), bySite('cors', 'empty'), bySite('navigate', 'iframe'), prefetch];
    for (const embedded of embeds) {
      for (const path of ['?1', '?2', '?x_api_key=wrong', unknown, `?x_api_key=${caller.key}`]) {
        expect(await load(path, embedded), path).to.equal(401);
      }
    }
    expect(await status('198.51.100.43')).to.equal(200);
    expect(await load('?5', { ...bySite('cors', 'empty'), 'x-api-key': caller.key })).to.equal(200);
    const asked = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'no-cors' };
    expect(await load(`?x_api_key=${caller.key}`, asked)).to.equal(200);
    for (const fetched of [{}, asked, bySite('navigate', 'document')]) {
      expect(await load('?4', fetched)).to.equal(401);
    }
    await expectBlocked(api, '198.51.100.43', caller.key, 15);
  });

  it('D38: failures older than the window do not count', async () => {
    await fail(api, '198.51.100.5', 2);
    api.store.advance(10 * minute + 1);
    await fail(api, '198.51.100.5', 2);
    expect(await status('198.51.100.5')).to.equal(200);
  });

  it('D34 D38: refusals of inactive, expired and used-up keys do not count as failures', async () => {
    const [off, old, used] = [
      await api.addCaller(),
      await api.addCaller(),
      await api.addCaller({ quotas: { total: 0 } }),
    ];
    await setKey(api.store, off.account, `k${off.keyId}`, { active: false });
    await setKey(api.store, old.account, `k${old.keyId}`, { expires: 1 });
    for (let n = 0; n < 4; n++) {
      for (const { key } of [off, old, used]) {
        const answer = await from(api, '198.51.100.6', key, `/v1/video/download?query=${film}`);
        expect(answer.status).to.equal(401);
      }
    }
    expect(await status('198.51.100.6')).to.equal(200);
  });

  it('D86: a good key does not clear the count of failures, which starts anew after a block', async () => {
    const address = '198.51.100.7';
    await fail(api, address, 2);
    expect(await status(address)).to.equal(200);
    await fail(api, address, 1);
    await expectBlocked(api, address, caller.key, 15);
    api.store.advance(15 * minute + 1);
    await fail(api, address, 2);
    expect(await status(address)).to.equal(200);
  });

  it('D38 D86: each further block lasts twice as long, up to a day, after which the doubling is forgotten', async () => {
    const address = '198.51.100.8';
    for (const minutes of [15, 30, 60, 120, 240, 480, 960, 1440, 15]) {
      await fail(api, address, 3);
      await expectBlocked(api, address, caller.key, minutes);
      api.store.advance((minutes - 1) * minute);
      await expectBlocked(api, address, caller.key, 1);
      api.store.advance(minute);
      expect(await status(address)).to.equal(200);
    }
  });

  it('D38: the caller is the last address that no trusted proxy added, as the request log shows', async () => {
    for (let n = 0; n < 3; n++) await fail(api, `203.0.113.${n}, 198.51.100.9, 10.1.1.1`, 1);
    await expectBlocked(api, '198.51.100.9', caller.key, 15);
    await expectBlocked(api, '198.51.100.10, 198.51.100.9', caller.key, 15);
    for (const free of ['203.0.113.1', '198.51.100.10', '198.51.100.9, 198.51.100.10']) {
      expect(await status(free), free).to.equal(200);
    }
    const seen = async () => (await readLines(api.store, caller.account, 99)).map(({ ip }) => ip);
    await until(async () => (await seen()).includes('198.51.100.10'), 5, 'the line');
    expect(await blocksOf(api))
      .to.include('198.51.100.9')
      .and.not.include('10.1.1.1');
  });

  it('D38: the addresses of one IPv6 /64 are one caller', async () => {
    for (let n = 1; n <= 3; n++) await fail(api, `2001:db8:1:2::${n}`, 1);
    await expectBlocked(api, '2001:DB8:1:2:ffff::9', caller.key, 15);
    expect(await status('2001:db8:1:3::9')).to.equal(200);
  });

  const odd = [
    '',
    ',',
    'unknown',
    '_hidden',
    '999.1.1.1',
    '"x"',
    'a'.repeat(3000),
    '1.2.3.4 , ',
    '127.0.0.1',
    '10.0.0.1',
  ];
  for (const address of odd) {
    it(`D38: X-Forwarded-For ${JSON.stringify(address).slice(0, 20)} of a trusted proxy blocks no address`, async () => {
      const before = await blocksOf(api);
      await fail(api, address, 4);
      expect(await status(address)).to.equal(200);
      expect(await blocksOf(api)).to.deep.equal(before);
    });
  }

  it('D38: a trusted proxy that sends no X-Forwarded-For is never blocked', async () => {
    await fail(api, null, 4);
    expect((await from(api, null, caller.key)).status).to.equal(200);
  });

  it('D38: a block and a count of failures hold on every replica', async () => {
    await fail(api, '198.51.100.11', 3);
    await fail(api, '198.51.100.12', 2);
    const second = await startApi(trusted, (parts) => ({ ...parts, store: api.store }));
    try {
      await expectBlocked(second, '198.51.100.11', caller.key, 15);
      await fail(second, '198.51.100.12', 1);
      await expectBlocked(second, '198.51.100.12', caller.key, 15);
      await until(async () => (await status('198.51.100.12')) === 403, 5, 'the first replica to hear of it');
    } finally {
      await second.stop();
    }
  });
});

describe('callers without a configured proxy', () => {
  let api: TestApi;
  let caller: ApiCaller;
  before(async () => {
    api = await startApi({ TRAWL_AUTH_FAILURES: '3', TRAWL_AUTH_BLOCK: '60' });
    caller = await api.addCaller();
  });
  after(() => api.stop());

  it('D38: a local peer that sends X-Forwarded-For is a stray proxy: never blocked, logged once', async () => {
    for (let n = 0; n < 6; n++) await fail(api, `203.0.113.${n % 2}`, 1);
    expect((await from(api, '203.0.113.0', caller.key)).status).to.equal(200);
    expect(await blocksOf(api)).to.deep.equal([]);
    expect(api.lines.filter((line) => strayProxy.test(line))).to.have.length(1);
    expect(await readStrayProxy(api.store.connection)).to.equal('127.0.0.1');
  });

  it('D38 D86: a peer without X-Forwarded-For is blocked itself, and its failures count anew afterwards', async () => {
    await fail(api, null, 3);
    await expectBlocked(api, null, caller.key, 1);
    expect(await blocksOf(api)).to.deep.equal(['127.0.0.1']);
    api.store.advance(minute);
    await fail(api, null, 2);
    expect((await from(api, null, caller.key)).status).to.equal(200);
  });
});
