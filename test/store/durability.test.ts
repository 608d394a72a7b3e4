import { expect } from 'chai';
import type { Connection } from '../../src/store/redis/connection.ts';
import { checkDurability } from '../../src/store/redis/durability.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

describe('durability', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis({ fsync: 'always' });
  });
  after(() => redis.stop());

  const set = (name: string, value: string) => redis.connection.send(['CONFIG', 'SET', name, value]);

  it('is complete with a redis-server of our own', async () => {
    expect(await checkDurability(redis.connection, 'strict')).to.deep.equal([]);
  });

  const weak = [
    { name: 'appendonly', value: 'no', good: 'yes' },
    { name: 'appendfsync', value: 'everysec', good: 'always' },
    { name: 'no-appendfsync-on-rewrite', value: 'yes', good: 'no' },
    { name: 'maxmemory-policy', value: 'allkeys-lru', good: 'noeviction' },
  ];
  for (const { name, value, good } of weak) {
    it(`is missing with ${name} ${value}, which strict refuses and relaxed reports`, async () => {
      const finding = `${name} is ${value}, set it to ${good}`;
      await set(name, value);
      try {
        expect(await checkDurability(redis.connection, 'relaxed')).to.deep.equal([finding]);
        expect(await refusal(redis.connection)).to.equal(
          `Redis may lose charges: ${finding}; TRAWL_DURABILITY=relaxed starts all the same`,
        );
      } finally {
        await set(name, good);
      }
    });
  }

  it('is missing when redis hides its settings and its version', async () => {
    await redis.connection.send(['ACL', 'SETUSER', 'default', '-config', '-info']);
    try {
      const findings = await checkDurability(redis.connection, 'relaxed');
      expect(findings).to.deep.equal(['it hides its settings (CONFIG GET)', 'it hides its version (INFO)']);
      expect(await refusal(redis.connection)).to.contain('it hides its settings (CONFIG GET)');
    } finally {
      await redis.connection.send(['ACL', 'SETUSER', 'default', '+@all']);
    }
  });

  it('is unavailable while redis is away', async () => {
    const other = await startTestRedis({ fsync: 'always' });
    await other.server.stop();
    const failure = await checkDurability(other.connection, 'relaxed').catch((error) => error);
    await other.stop();
    expect(failure).to.include({ code: 'unavailable' });
  });
});

async function refusal(connection: Connection): Promise<string> {
  return checkDurability(connection, 'strict').then(
    () => 'accepted',
    (error: Error) => error.message,
  );
}
