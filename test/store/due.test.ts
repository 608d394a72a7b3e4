import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import type { Job } from '../../src/model/job.ts';
import { dropFile } from '../../src/store/jobs/kept-files.ts';
import { listOverdue, readOpenings } from '../../src/store/jobs/open-work.ts';
import { requeueDelayed } from '../../src/store/jobs/requeue-delayed.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { freeLine } from '../support/free-line.ts';
import { admitted, anAccount, aRunningJob, completed, holder, startNext, type TestStore } from '../support/record.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day, line: 90 * day };
const quiet = makeLog({ level: 'error', write: () => {}, now: () => 0 });

/** Completes a job whose file is then removed: its record goes no earlier. */
async function endWithoutFile(store: TestStore, job: Job): Promise<void> {
  await settleJob(store, holder, job, completed);
  await dropFile(store, job.id);
}

/** Work that is due is found without a look at what is not. */
describe('what is due in the record', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  const scoreOf = async (key: string, member: string) => {
    const score = await store.connection.send(['ZSCORE', key, member]);
    return score === null ? null : Number(score);
  };
  const exists = async (key: string) => Number(await store.connection.send(['EXISTS', key])) === 1;

  it('is found and swept beside 21,000 accounts with a few commands, where it once filled the queue of commands', async () => {
    const caller = await anAccount(store, { credits: 2 });
    const id = await admitted(store, caller);
    const others = Array.from({ length: 21_000 }, (_, n) => [`slug${n}`, `account${n}`]).flat();
    await store.connection.send(['HSET', keys.slugs, ...others]);
    store.advance(day);
    const before = store.connection.calls();
    expect(await readOpenings(store)).to.include({ queued: 1, held: 1 });
    expect(await listOverdue(store, store.clock.now() - day + 1)).to.deep.equal([id]);
    await sweepRecord(store, lifetimes);
    expect(store.connection.calls() - before).to.be.below(20);
  });

  it('is an overdue job while it waits for its turn, also after a failed attempt, and never while it runs', async () => {
    const caller = await anAccount(store, { credits: 3 });
    const id = await admitted(store, caller);
    const late = () => listOverdue(store, store.clock.now() + 1);
    expect(await late()).to.deep.equal([id]);
    const job = await startNext(store);
    expect(await late()).to.deep.equal([]);
    const why = { counts: 'failure', code: 'timeout' } as const;
    await retryJob(store, holder, job!, { ...why, notBefore: 0 });
    expect(await late()).to.deep.equal([id]);
    const again = await startNext(store);
    await retryJob(store, holder, again!, { ...why, notBefore: store.clock.now() + 1000 });
    expect(await late()).to.deep.equal([]);
    expect(await readOpenings(store)).to.include({ queued: 0, active: 0, held: 1, oldestQueued: null });
    store.advance(2000);
    await requeueDelayed(store);
    expect(await late()).to.deep.equal([id]);
    const last = await startNext(store);
    await settleJob(store, holder, last!, completed);
    expect(await late()).to.deep.equal([]);
  });

  it('is a stream of lines from its first line until it is empty, with the time of its oldest line', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const [paid, free] = [keys.paidLines(caller.keyId), keys.freeLines(caller.keyId)];
    const lines = openRequestLog(store, 200, quiet);
    const settle = async () => settleJob(store, holder, await aRunningJob(store, caller), completed);
    const addFree = async () => {
      lines.add(caller, { ...freeLine, at: store.clock.now() });
      await lines.flush();
    };
    const began = store.clock.now();
    for (let n = 0; n < 2; n++) {
      await settle();
      await addFree();
      if (n === 0) store.advance(day);
    }
    for (const stream of [paid, free])
      expect(await scoreOf(keys.lineStreams, stream)).to.be.within(began, began + day / 2);
    store.advance(90 * day - day / 2);
    expect(await sweepRecord(store, lifetimes)).to.include({ lines: 2 });
    for (const stream of [paid, free])
      expect(await scoreOf(keys.lineStreams, stream)).to.be.within(began + day, began + 1.5 * day);
    store.advance(day);
    expect(await sweepRecord(store, lifetimes)).to.include({ lines: 2 });
    for (const stream of [paid, free])
      expect([await exists(stream), await scoreOf(keys.lineStreams, stream)]).to.deep.equal([false, null]);
    await settle();
    await addFree();
    for (const stream of [paid, free]) expect(await scoreOf(keys.lineStreams, stream)).to.be.above(began + 90 * day);
    expect(await readLines(store, caller.accountId, 9)).to.have.length(2);
    await lines.close();
  });

  it('is left for the next sweep when that must stop', async () => {
    const caller = await anAccount(store, { credits: 3 });
    for (let n = 0; n < 3; n++) await endWithoutFile(store, await aRunningJob(store, caller));
    store.advance(40 * day);
    let asked = 0;
    const stopping = { report: () => {}, goOn: () => ++asked <= 2 };
    expect(await sweepRecord(store, lifetimes, stopping)).to.include({ jobs: 2 });
    expect(await sweepRecord(store, lifetimes)).to.include({ jobs: 1 });
  });

  it('is done although 150 entries before it cannot be, which are reported where they fail', async () => {
    const caller = await anAccount(store, { quota: 2, credits: 1 });
    await endWithoutFile(store, await aRunningJob(store, caller));
    const broken = await anAccount(store, { quota: 2 });
    await store.connection.send(['SET', keys.account(broken.accountId), 'no hash']);
    const stuck = Array.from({ length: 150 }, (_, n) => ['1', `nobody${n}`]).flat();
    await store.connection.send(['ZADD', keys.periods, ...stuck]);
    store.advance(40 * day);
    const reported: unknown[] = [];
    const swept = await sweepRecord(store, lifetimes, { report: (error) => reported.push(error), goOn: () => true });
    expect(swept).to.include({ periods: 1, jobs: 1 });
    expect(reported).to.have.length(1);
    expect(reported[0])
      .to.be.an('error')
      .with.property('message')
      .match(/WRONGTYPE/);
    const kinds = (await readLedger(store, caller.accountId, 2)).map(({ kind }) => kind);
    expect(kinds).to.deep.equal(['grant', 'lapse']);
  });
});
