import { expect } from 'chai';
import { connect } from '../../src/store/redis/connection.ts';
import { readTopology } from '../../src/store/redis/discovery.ts';
import { tryNewConnections } from '../../src/store/redis/new-connections.ts';
import { askOnce, openRedisClient } from '../../src/store/redis/redis-client.ts';
import { aLog, startTestRedis, startTestSentinel, type TestSentinel } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a new connection to Redis behind Sentinels', () => {
  let redis: TestSentinel;
  let sentinel: string;
  beforeEach(async () => {
    redis = await startTestSentinel();
    sentinel = redis.url.replace('redis+sentinel:', 'redis:').replace(/\/trawl$/, '');
  });
  afterEach(() => redis.stop());

  const addPassword = (url: string, password: string) => askOnce(url, ['ACL', 'SETUSER', 'default', `>${password}`]);
  const endPasswords = (url: string) => askOnce(url, ['ACL', 'SETUSER', 'default', 'resetpass', '>other']);

  it('is tried at the Sentinel and at the replica, which tells that either refuses the login', async () => {
    const tried = async () =>
      (await tryNewConnections(readTopology(redis.url))).map(({ kind, error }) => `${kind} ${error?.message ?? 'ok'}`);
    expect(await tried()).to.deep.equal(['Sentinel ok', 'replica ok']);
    await endPasswords(redis.replica.url);
    expect((await tried()).join()).to.match(/^Sentinel ok,replica WRONGPASS/);
    await endPasswords(sentinel);
    expect((await tried()).join()).to.match(/^Sentinel NOAUTH|^Sentinel WRONGPASS/);
  });

  it('is tried after a change of the password, and the log names the Sentinel that refuses it while the present one lasts', async () => {
    const { log, lines } = aLog();
    let url = redis.url;
    const connection = await connect(() => url, { log });
    try {
      for (const node of [redis.master, redis.replica]) await addPassword(node.url, 'next');
      await endPasswords(sentinel);
      url = url.replace(/\/\/:[^@]*@/, '//:next@');
      await until(() => lines.some((line) => line.includes('refuses a new connection')), 30, 'a line of the Sentinel');
      expect(lines.join()).to.include(new URL(sentinel).host).and.not.include(':next@');
      expect(lines.join()).not.to.include('replica');
      expect(connection.ready()).to.equal(true);
    } finally {
      await connection.close();
    }
  });
});

describe('a new connection to Redis at a socket', () => {
  it('has the class that those to other addresses have, which takes 20 ms of CPU to make', async () => {
    const servers = [await startTestRedis(), await startTestRedis()];
    const clients = await Promise.all(servers.map(({ url }) => openRedisClient(url)));
    try {
      // The library gives each connection an object that inherits from the client.
      const [one, other] = clients.map((client) => Object.getPrototypeOf(client).constructor);
      expect(one).to.equal(other);
    } finally {
      for (const client of clients) client.destroy();
      for (const server of servers) await server.stop();
    }
  });

  it('is tried, and its address named without the password', async () => {
    const redis = await startTestRedis();
    try {
      const [tried, ...more] = await tryNewConnections(readTopology(redis.url));
      expect(tried).to.deep.include({ kind: 'Redis', error: null });
      expect(tried?.address).to.match(/^\/[^@]*redis\.sock$/);
      expect(more).to.deep.equal([]);
    } finally {
      await redis.stop();
    }
  });
});
