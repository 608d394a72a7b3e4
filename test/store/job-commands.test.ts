import { expect } from 'chai';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { admitted, anAccount, completed, holder, lead, storeOf, takeOne, theJob } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

const jobs = 20;
/** Commands that are not a script's own: its call, its clock, what this test reads and asks, and the watch of durability. */
const others = ['evalsha', 'eval', 'time', 'info', 'config|get', 'config|resetstat', 'hgetall'];
/** Commands that move windows of counters: how many there are depends on the time that passes, not on jobs. */
const ofTime = ['bitfield', 'setrange'];
const report = { progress: 5, stage: 'download', speed_bytes: 1_000, eta_seconds: 9 };

describe('the commands of a whole job in Redis', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  /** Commands in scripts for each job of an account that is admitted, taken, started, reports, and is charged. */
  async function countCommands(reports: number): Promise<number> {
    const store = storeOf(redis.connection);
    const caller = await anAccount(store, { quota: 10, credits: 1_000, perSecond: 10_000, perMinute: 10_000 });
    await lead(store, holder);
    const take = takeOne(store, holder, 10);
    const workOff = async () => {
      const id = await admitted(store, caller);
      expect(await take()).to.equal(id);
      const job = { ...(await theJob(store, id)), attempt: 1 };
      await startAttempt(store, holder, job, 1);
      for (let n = 0; n < reports; n += 1) await noteProgress(store, job, 1, report);
      expect(await settleJob(store, holder, job, completed)).to.include({ done: true });
    };
    // The first one of an account also makes its windows of counters.
    await workOff();
    await redis.connection.send(['CONFIG', 'RESETSTAT']);
    for (let n = 0; n < jobs; n += 1) await workOff();
    const told = String(await redis.connection.send(['INFO', 'commandstats']));
    const calls = [...told.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].filter(
      ([, name]) => ![...others, ...ofTime].includes(name!),
    );
    return calls.reduce((sum, [, , n]) => sum + Number(n), 0) / jobs;
  }

  it('are at most 45 for one that reports once, and two more for each further report', async () => {
    const [once, fiveTimes] = [await countCommands(1), await countCommands(5)];
    expect(once).to.be.at.most(45);
    expect(fiveTimes - once).to.be.within(7, 9);
  });
});
