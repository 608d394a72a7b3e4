import { mock } from 'node:test';
import { expect } from 'chai';
import fc from 'fast-check';
import { isEnded } from '../../src/model/job.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { openRedisClient, type RedisClient } from '../../src/store/redis/redis-client.ts';
import type { LuaMutant } from '../mutation/lua-mutants.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { contradictions } from '../support/whole-record.ts';
import { jobMutants } from './job-mutants.ts';
import { choicesOf } from './scheduler.ts';
import { SimulatedService, slots } from './simulated-service.ts';

const rounds = Number(process.env.ROUNDS ?? 20);
const isLong = process.env.ROUNDS !== undefined;
const maxHistoriesOfMutant = 150;
const maxEvents = 400;
const start = Date.UTC(2030, 0, 1);
const maxChoices = 4 * maxEvents;
const tapes = fc.array(fc.nat(9_999), { minLength: 100, maxLength: maxChoices, size: 'max' });
const longTapes = fc.array(fc.nat(9_999), { minLength: maxChoices, maxLength: maxChoices });

describe('every history of the service', function () {
  this.timeout(0);
  let redis: TestRedis;
  let client: RedisClient;
  before(async () => {
    redis = await startTestRedis();
    // It checks Redis every 400 ms, and a timer that is cleared while timers are mocked would stay for 30 s.
    await redis.connection.close();
    client = await openRedisClient(redis.url);
  });
  after(async () => {
    client.destroy();
    await redis.stop();
  });

  it(`keeps the promises about jobs, money and files: ${rounds} histories`, async () => {
    const run = fc.asyncProperty(tapes, async (tape) => {
      await live(client, tape, null);
    });
    await fc.assert(run, { numRuns: rounds, endOnFailure: rounds < 100 });
  });

  it('is the same twice with the same choices', async () => {
    const [tape] = fc.sample(longTapes, 1);
    const histories = [await live(client, tape!, null), await live(client, tape!, null)];
    expect(histories[1]).to.deep.equal(histories[0]);
    expect(histories[0]!.length, 'events').to.be.above(100);
  });

  if (isLong) {
    for (const mutant of jobMutants) {
      it(`breaks a promise when ${mutant.name.replace(': ', ' ')}`, async () => {
        const run = fc.asyncProperty(tapes, async (tape) => void (await live(client, tape, mutant)));
        // Without the mutant, the first test lives through the same tapes.
        const limits = { numRuns: maxHistoriesOfMutant, endOnFailure: true };
        const { errorInstance: broken, numRuns } = await fc.check(run, limits);
        if (!(broken instanceof BrokenHistory)) throw new Error(`no promise is broken within ${numRuns} histories`);
        expect(broken.mutated, 'times that Redis ran the mutant').to.be.above(0);
        expect((broken.cause as Error).name, broken.message.split('\n')[0]).to.equal('AssertionError');
      });
    }
  }
});

/** A history in which a promise is broken, with all of its events. */
class BrokenHistory extends Error {
  readonly mutated: number;

  constructor({ log, mutated }: SimulatedService, cause: Error) {
    super(`${cause.message}\n${log.join('\n')}`, { cause });
    this.mutated = mutated;
  }
}

/** Lives through one history and checks what must hold at its end. */
async function live(client: RedisClient, tape: readonly number[], mutant: LuaMutant | null) {
  await client.sendCommand(['FLUSHALL']);
  const time = { now: start, unsteadyUntil: 0 };
  const choices = choicesOf(tape);
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  let passed = 0;
  let state = 1;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  // Assigned, not mocked: a mock keeps every call, and a history makes a million.
  const [realNow, realRandom] = [performance.now, Math.random];
  performance.now = () => passed;
  Math.random = random;
  const tick = (milliseconds: number) => {
    passed += milliseconds;
    mock.timers.tick(milliseconds);
  };
  const service = new SimulatedService({ client, choices, tick, time, mutant });
  try {
    await service.begin();
    for (let event = 0; event < maxEvents && !choices.isOver(); event++) await service.step();
    await service.finish();
    await check(service);
    return service.log;
  } catch (error) {
    throw new BrokenHistory(service, error as Error);
  } finally {
    performance.now = realNow;
    Math.random = realRandom;
    mock.timers.reset();
  }
}

async function check(service: SimulatedService): Promise<void> {
  const { store, cluster, accounts } = service;
  expect(service.mostActive, 'jobs that had a slot at once').to.be.at.most(slots);
  expect(await service.changedEnds(), 'ends that changed').to.deep.equal([]);
  const jobs = await service.jobs();
  expect(jobs.filter((job) => job === null).length, 'jobs that were lost').to.equal(0);
  const open = jobs.filter((job) => !isEnded(job!.status)).map((job) => `${job!.id} ${job!.status}`);
  expect(open, 'jobs that never ended').to.deep.equal([]);
  expect([...cluster.workers.keys()], 'workers that were left').to.deep.equal([]);
  for (const { accountId } of accounts) {
    expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
    const entries = await readLedger(store, accountId, 10_000);
    const charged = entries.filter(({ kind }) => kind === 'charge' || kind === 'overdraft').map(({ job }) => job);
    expect(entries.filter(({ kind }) => kind === 'overdraft').length, 'charges without a held credit').to.equal(0);
    expect(new Set(charged).size, 'jobs charged once').to.equal(charged.length);
    for (const job of jobs) {
      if (job?.account !== accountId) continue;
      const isDone = job.status === 'CompletedJob';
      expect(charged.includes(job.id), `${job.id}, ${job.status}, is charged`).to.equal(isDone);
      if (!isDone) continue;
      expect(job.delivered, `the file that ${job.id} names`).not.to.equal(null);
      const file = cluster.files.get(job.delivered!.key);
      expect(file, `the file of ${job.id}`).to.deep.equal({
        bytes: job.delivered!.bytes,
        checksum: job.delivered!.sha256,
      });
    }
    const drawn = entries.flatMap(({ kind, pack }) => (kind === 'charge' && pack !== null ? [pack] : [])).toReversed();
    // Each pack has one credit.
    expect(drawn, 'packs, oldest first').to.deep.equal(service.packs.slice(0, drawn.length));
    const lines = await readLines(store, accountId, 10_000);
    expect(
      lines.reduce((sum, { credits }) => sum + credits, 0),
      'credits in the request log',
    ).to.equal(charged.length);
    const counters = await store.connection.read(['HMGET', keys.account(accountId), 'held', 'running']);
    expect(counters, 'held credits and running jobs').to.deep.equal(['0', '0']);
  }
  const due = await store.connection.read(['ZRANGE', keys.webhooks, '0', '-1']);
  for (const job of jobs) {
    const delivery = await store.connection.read(['HGETALL', keys.webhook(job!.id)]);
    const isDue = due.some((member) => member.endsWith(`/${job!.id}`));
    const expected = service.withWebhook.has(job!.id);
    expect([delivery.length > 0, isDue], `the webhook of ${job!.id}`).to.deep.equal([expected, expected]);
  }
  expect(await contradictions(store.connection), 'contradictions of the record').to.deep.equal([]);
  const left = await store.connection.read(['ZRANGE', keys.openWork, '0', '-1']);
  expect(left, 'jobs in a queue').to.deep.equal([]);
}
