import { cp, mkdir, readdir, stat, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import type { Job } from '../../src/model/job.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { connect } from '../../src/store/redis/connection.ts';
import { startRedis } from '../../src/store/redis/embedded-server.ts';
import { inLanes } from '../bench/rounds.ts';
import { makeRandom } from '../support/random.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  ask,
  completed,
  failed,
  holder,
  lead,
  startNext,
  storeOf,
  type TestStore,
} from '../support/record.ts';
import { patient, startTestRedis } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { until } from '../support/until.ts';

type Settled = Awaited<ReturnType<typeof settleJob>>;

const isSoak = process.env.ROUNDS !== undefined;
const settles = isSoak ? 5000 : 1000;
const cutStep = isSoak ? 1 : 8;
const quiet = makeLog({ level: 'error', write: () => {}, now: () => 0 });

describe('a redis that crashes', () => {
  let redis: Awaited<ReturnType<typeof startTestRedis>>;
  let store: TestStore;
  beforeEach(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
  });
  afterEach(() => redis.stop());

  const jobsThatRun = async (many: number, caller: Awaited<ReturnType<typeof anAccount>>) => {
    // Few at a time: on a busy machine Redis would not answer all of them within its time.
    await inLanes(50, many, () => admitted(store, caller));
    const jobs: Job[] = [];
    for (let job = await startNext(store); job; job = await startNext(store)) jobs.push(job);
    return jobs;
  };
  const settleUntilAnswered = async (job: Job): Promise<Settled> => {
    let answer: Settled | null = null;
    await until(
      async () => {
        await lead(store, holder).catch(() => false);
        answer = await settleJob(store, holder, job, completed).catch(() => null);
        return answer !== null && answer.refused !== 'not_leading';
      },
      30,
      'an answer to a settle',
    );
    return answer!;
  };

  it(`loses and doubles nothing when it is killed in the middle of ${settles} settles`, async function () {
    this.timeout(300_000 + settles * 300);
    const caller = await anAccount(store, { credits: settles + 5 });
    const jobs = await jobsThatRun(settles, caller);
    expect(jobs).to.have.length(settles);
    let acknowledged = 0;
    const killAt = Math.floor(settles * (0.2 + makeRandom(seed)() * 0.6));
    const first = jobs.map(async (job) => {
      const answer = await settleJob(store, holder, job, completed).catch(() => null);
      if (answer?.done && ++acknowledged === killAt) process.kill(redis.pid(), 'SIGKILL');
      return answer;
    });
    const before = await Promise.all(first);
    const after = [];
    for (const job of jobs) after.push(await settleUntilAnswered(job));
    for (const [n, answer] of before.entries()) {
      if (answer?.done) expect(after[n]?.refused, 'an acknowledged settle was lost').to.equal('already_ended');
    }
    const { balances } = await readSnapshot(store, caller.accountId);
    expect(balances).to.deep.include({ credits_consumed: settles, held: 0 });
    const charges = (await readLedger(store, caller.accountId, settles * 2)).filter((entry) => entry.kind === 'charge');
    expect(new Set(charges.map((entry) => entry.job)).size).to.equal(settles);
    expect(charges).to.have.length(settles);
    expect(await readLines(store, caller.accountId, settles * 2)).to.have.length(settles);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
  });

  it('has balances that fit the ledger after its append-only file was cut at any byte of its end', async () => {
    const caller = await anAccount(store, { credits: 40, quota: 3, packs: [2] });
    for (const job of await jobsThatRun(12, caller)) await settleJob(store, holder, job, completed);
    await redis.server.stop();
    const kept = dirname(redis.server.socket);
    const incremental = (await readdir(join(kept, 'appendonlydir'))).find((name) => name.endsWith('.incr.aof'))!;
    let seen = 0;
    for (let cut = 1; cut <= 200; cut += cutStep) {
      const folder = join(kept, `cut-${cut}`);
      await mkdir(folder);
      await cp(join(kept, 'appendonlydir'), join(folder, 'appendonlydir'), { recursive: true });
      const file = join(folder, 'appendonlydir', incremental);
      await truncate(file, (await stat(file)).size - cut);
      const server = await startRedis({ folder, log: quiet });
      const connection = await connect(server.url, { log: quiet, ...patient });
      try {
        const cutStore = storeOf(connection);
        expect((await verifyLedger(cutStore, caller.accountId)).problems, `${cut} bytes`).to.deep.equal([]);
        const { balances } = await readSnapshot(cutStore, caller.accountId);
        expect(
          balances.held + balances.used + balances.credits_consumed + balances.packs[0]!.used,
          `${cut} bytes`,
        ).to.equal(12);
        seen++;
      } finally {
        await connection.close();
        await server.stop();
      }
    }
    expect(seen).to.equal(Math.ceil(200 / cutStep));
  });
});

describe('a redis without memory', () => {
  it('refuses admissions and still settles, releases and cancels', async () => {
    const redis = await startTestRedis({ maxMemoryBytes: 24 * 1024 * 1024 });
    const store = storeOf(redis.connection);
    try {
      const caller = await anAccount(store, { credits: 1_000_000, max_open: 1_000_000 });
      const succeed = await aRunningJob(store, caller);
      const fail = await aRunningJob(store, caller);
      const filler = 'x'.repeat(4000);
      const work = { ...aDownload, args: { filler } };
      let last = await ask(store, caller, { work });
      for (let n = 0; n < 20_000 && 'admitted' in last; n++) {
        last = await ask(store, caller, { work }).catch(
          (error: { code: string }) => ({ refused: error.code }) as never,
        );
      }
      expect(last).to.deep.include({ refused: 'unavailable' });
      // Filling the memory may have taken longer than the lease of the leadership.
      await lead(store, holder);
      expect(await settleJob(store, holder, succeed, completed)).to.deep.equal({ done: true, balance: 'credits' });
      expect(await settleJob(store, holder, fail, failed)).to.deep.equal({ done: true, balance: '' });
      const waiting = await startNext(store);
      expect(await cancelJob(store, waiting!)).to.deep.equal({ done: true });
      expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    } finally {
      await redis.stop();
    }
  });
});
