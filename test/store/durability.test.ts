import { expect } from 'chai';
import type { Connection } from '../../src/store/redis/connection.ts';
import { checkDurability, memoryRatio } from '../../src/store/redis/durability.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

describe('durability', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  const set = (name: string, value: string) => redis.connection.send(['CONFIG', 'SET', name, value]);

  it('is given by a server of our own', async () => {
    expect(await checkDurability(redis.connection, 'strict')).to.deep.equal({ relaxed: false, findings: [] });
  });

  const weak = [
    { name: 'appendonly', value: 'no', good: 'yes' },
    { name: 'appendfsync', value: 'everysec', good: 'always' },
    { name: 'maxmemory-policy', value: 'allkeys-lru', good: 'noeviction' },
  ];
  for (const { name, value, good } of weak) {
    it(`is missing with ${name} ${value}: strict refuses it, relaxed tells it`, async () => {
      const finding = `${name} is ${value}, set it to ${good}`;
      await set(name, value);
      try {
        expect(await checkDurability(redis.connection, 'relaxed')).to.deep.equal({
          relaxed: true,
          findings: [finding],
        });
        expect(await refusal(redis.connection)).to.equal(
          `Redis may lose charges: ${finding}; TRAWL_DURABILITY=relaxed starts all the same`,
        );
      } finally {
        await set(name, good);
      }
    });
  }

  it('is missing when redis hides what it does', async () => {
    await redis.connection.send(['ACL', 'SETUSER', 'default', '-config', '-info']);
    try {
      const { relaxed, findings } = await checkDurability(redis.connection, 'relaxed');
      expect(relaxed).to.equal(true);
      expect(findings).to.deep.equal(['it hides its settings (CONFIG GET)', 'it hides its version (INFO)']);
      expect(await refusal(redis.connection)).to.contain('it hides its settings (CONFIG GET)');
    } finally {
      await redis.connection.send(['ACL', 'SETUSER', 'default', '+@all']);
    }
  });

  it('is not known while redis is away', async () => {
    const other = await startTestRedis();
    await other.server.stop();
    const failure = await checkDurability(other.connection, 'relaxed').catch((error) => error);
    await other.stop();
    expect(failure).to.include({ code: 'unavailable' });
  });

  it('tells how full the memory is', async () => {
    expect(await memoryRatio(redis.connection)).to.equal(0);
    await set('maxmemory', String(100 * 1024 * 1024));
    expect(await memoryRatio(redis.connection)).to.be.within(0.005, 0.1);
    await set('maxmemory', '0');
  });
});

async function refusal(connection: Connection): Promise<string> {
  return checkDurability(connection, 'strict').then(
    () => 'accepted',
    (error: Error) => error.message,
  );
}
