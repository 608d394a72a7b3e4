import { expect } from 'chai';
import { checkRecord } from '../../src/admin/check-record.ts';
import { checkServers } from '../../src/admin/record-findings.ts';
import { askOnce } from '../../src/store/redis/redis-client.ts';
import { aLog, startTestSentinel, type TestSentinel } from '../support/redis.ts';

describe('the doctor, of the servers behind a Redis with Sentinels', () => {
  let redis: TestSentinel;
  beforeEach(async () => {
    redis = await startTestSentinel();
  });
  afterEach(() => redis.stop());

  const judge = async () => {
    const rules = { durability: 'relaxed', redisMemory: null, trustedProxies: [] } as const;
    const patience = { timeoutMs: 30_000, onSlow: () => {} };
    const found = await checkRecord({ redisUrl: redis.url, data: '/nowhere', ...rules }, aLog().log, patience, null);
    return found.filter(({ about }) => about === 'servers').map(({ level, text }) => `${level} ${text}`);
  };

  it('names each that takes a new connection, and the one that refuses the password of now', async () => {
    const replica = `replica 127.0.0.1:${redis.replica.port}`;
    expect(await judge()).to.deep.equal([
      `ok New connections are taken by Sentinel ${new URL(redis.url).host}, ${replica}.`,
    ]);
    await askOnce(redis.replica.url, ['ACL', 'SETUSER', 'default', 'resetpass', '>other']);
    const [found, ...more] = await judge();
    expect(found).to.match(
      new RegExp(
        `^problem ${replica} refuses user and password of TRAWL_REDIS_URL \\(WRONGPASS .*\\): give it the user`,
      ),
    );
    expect(more).to.deep.equal([]);
  });

  it('names the Sentinel that refuses beside the record that cannot be reached for it', async () => {
    const { host } = new URL(redis.url);
    const sentinel = redis.url.replace('redis+sentinel:', 'redis:').replace(/\/trawl$/, '');
    await askOnce(sentinel, ['ACL', 'SETUSER', 'default', 'resetpass', '>other']);
    expect((await judge()).join()).to.match(new RegExp(`^problem Sentinel ${host} refuses user and password`));
  });

  it('notes one that is away, and says nothing of a single one', () => {
    const sentinel = { kind: 'Sentinel', address: 'a:26379', error: null } as const;
    const away = { kind: 'Sentinel', address: 'b:26379', error: new Error('connect ECONNREFUSED b:26379') } as const;
    expect(checkServers([{ ...sentinel, kind: 'Redis' }])).to.deep.equal([]);
    const text =
      'Sentinel b:26379 takes no new connection (connect ECONNREFUSED b:26379): a takeover may not be followed while it is away.';
    expect(checkServers([sentinel, away])).to.deep.equal([{ level: 'note', about: 'servers', text }]);
  });
});
