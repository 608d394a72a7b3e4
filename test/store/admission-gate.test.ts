import { totalmem } from 'node:os';
import { expect } from 'chai';
import { readConfig } from '../../src/base/config.ts';
import { machineMemoryBytes } from '../../src/base/machine-memory.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeShutdown } from '../../src/base/shutdown.ts';
import { openRecord } from '../../src/roles/open-record.ts';
import { watchAdmissions } from '../../src/store/redis/admission-gate.ts';
import { memoryRatio, readMemory } from '../../src/store/redis/redis-memory.ts';
import { aFolder, aLog, startTestRedis, startTestServer, type TestRecord } from '../support/redis.ts';
import { until } from '../support/until.ts';

const mebibyte = 2 ** 20;

describe('the memory of redis', () => {
  let redis: TestRecord;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());
  afterEach(() => redis.connection.send(['CONFIG', 'SET', 'maxmemory', '0']));

  it('is limited by its own limit, whatever is assumed', async () => {
    await redis.connection.send(['CONFIG', 'SET', 'maxmemory', String(100 * mebibyte)]);
    const memory = await readMemory(redis.connection, 7);
    expect(memory).to.include({ limitBytes: 100 * mebibyte, isOwnLimit: true });
    expect(memoryRatio(memory)).to.be.within(0.005, 0.1);
  });

  it('without a limit of its own is limited by what is assumed, else by 75 % of the memory of its machine', async () => {
    expect(await readMemory(redis.connection, mebibyte)).to.include({ limitBytes: mebibyte, isOwnLimit: false });
    const seen = await readMemory(redis.connection, null);
    expect(seen.isOwnLimit).to.equal(false);
    expect(seen.limitBytes).to.be.within(totalmem() * 0.74, totalmem() * 0.76);
    expect(memoryRatio(seen)).to.be.within(0, 0.1);
  });

  it('memory of Redis that is hidden has no limit, and is used by 0', async () => {
    await redis.connection.send(['ACL', 'SETUSER', 'default', '-info']);
    const memory = await readMemory(redis.connection, null);
    await redis.connection.send(['ACL', 'SETUSER', 'default', '+info']);
    expect(memory).to.deep.equal({ usedBytes: 0, limitBytes: null, isOwnLimit: false });
    expect(memoryRatio(memory)).to.equal(0);
  });

  it('logs when it is nearly full, and when it has room again', async () => {
    const { lines, log } = aLog();
    const { usedBytes } = await readMemory(redis.connection, null);
    const settings = { redisMemory: Math.floor(usedBytes / 2), durability: 'relaxed' } as const;
    const gate = await watchAdmissions(redis.connection, settings, makeMetrics(), log);
    await redis.connection.send(['CONFIG', 'SET', 'maxmemory', String(100 * mebibyte)]);
    await until(() => gate.isOpen, 5, 'the gate to open');
    gate.close();
    expect(lines.map((line) => JSON.parse(line)).map(({ level, text }) => [level, text])).to.deep.equal([
      ['error', 'the memory of redis is nearly full: nothing more is admitted'],
      ['info', 'the memory of redis has room again'],
    ]);
  });

  it('closes the gate at 85 % of the assumed limit of a Redis that has none, and a metric says that it has none', async () => {
    const metrics = makeMetrics();
    const { usedBytes } = await readMemory(redis.connection, null);
    const settings = { redisMemory: Math.floor(usedBytes / 2), durability: 'relaxed' } as const;
    const gate = await watchAdmissions(redis.connection, settings, metrics, aLog().log);
    expect(gate.isOpen).to.equal(false);
    expect((await metrics.redis_memory_unlimited.get()).values[0]?.value).to.equal(1);
    await redis.connection.send(['CONFIG', 'SET', 'maxmemory', String(100 * mebibyte)]);
    await until(() => gate.isOpen, 5, 'the gate to open');
    expect((await metrics.redis_memory_unlimited.get()).values[0]?.value).to.equal(0);
    gate.close();
  });
});

describe('a record that a role opens', () => {
  const open = async (env: Record<string, string>) => {
    const { folder, remove } = aFolder();
    const { log } = aLog();
    const [stop, metrics] = [makeShutdown(), makeMetrics()];
    const config = readConfig({ TRAWL_DATA: folder, ...env });
    const reported: string[] = [];
    const store = await openRecord({ config, log, metrics, stop }, ({ about, text }) =>
      reported.push(`${about}: ${text}`),
    );
    const [, maxmemory] = (await store.connection.send(['CONFIG', 'GET', 'maxmemory'])) as string[];
    const unlimited = (await metrics.redis_memory_unlimited.get()).values[0]?.value;
    await stop.run();
    remove();
    return { maxmemory: Number(maxmemory), unlimited, reported };
  };

  it('a record in a redis-server of its own has a quarter of the memory of the machine, unless TRAWL_REDIS_MEMORY names another limit', async () => {
    const quarter = Math.floor(machineMemoryBytes() / 4);
    expect(await open({})).to.deep.equal({ maxmemory: quarter, unlimited: 0, reported: [] });
    const named = await open({ TRAWL_REDIS_MEMORY: String(300 * mebibyte) });
    expect(named).to.deep.equal({ maxmemory: 300 * mebibyte, unlimited: 0, reported: [] });
  });

  it('a record in a Redis without a memory limit is reported at the start, with the limit that is assumed', async () => {
    const server = await startTestServer();
    const env = { TRAWL_REDIS_URL: server.url, TRAWL_REDIS_MEMORY: String(2 ** 31) };
    const { maxmemory, unlimited, reported } = await open(env);
    await server.stop();
    expect({ maxmemory, unlimited }).to.deep.equal({ maxmemory: 0, unlimited: 1 });
    expect(reported).to.have.length(1);
    expect(reported[0]).to.match(/^memory: Redis has no memory limit of its own: .* from 85 % of 2\.0 GiB on/);
  });
});
