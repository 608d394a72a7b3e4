import { expect } from 'chai';
import { recordingStage } from '../../src/model/attempt-stages.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { interruptRecording } from '../../src/store/jobs/interrupt-recording.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { offerTurns } from '../../src/store/jobs/offer-turns.ts';
import { findUnserved, readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { preemptJob } from '../../src/store/jobs/preempt-job.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { makeTake } from '../../src/store/jobs/take-jobs.ts';
import { keys } from '../../src/store/keys.ts';
import { unservedFrom } from '../../src/store/lua/fair-share.ts';
import {
  admitted,
  anAccount,
  completed,
  failed,
  holder,
  startNext,
  type TestStore,
  theJob,
} from '../support/record.ts';

type Caller = Parameters<typeof admitted>[1];

/** Steps of a test with the store that it has then. */
function stepsOf(store: () => TestStore) {
  const fill = async (account: Caller, jobs: number) => {
    for (let n = 0; n < jobs; n++) await admitted(store(), account);
  };
  /** Accounts of the jobs that begin now, one after another. */
  const begin = async (slots: number, kept: number) => {
    const accounts: string[] = [];
    for await (const id of makeTake(store(), holder, { slots, kept, maxWaitMs: 30_000 })()) {
      const job = await theJob(store(), id);
      await startAttempt(store(), holder, job, job.attempt + 1);
      accounts.push(job.account);
    }
    return accounts;
  };
  const end = async (account: string) => {
    const own = (await readActiveJobs(store())).find((job) => job.account === account);
    await settleJob(store(), holder, await theJob(store(), own?.id ?? ''), failed);
  };
  const two = async (weight = 1) => {
    const first = await anAccount(store(), { credits: 99, weight });
    return [first, await anAccount(store(), { credits: 9 })] as const;
  };
  const preempt = async (jobId: string, slots = 2, who = holder) => {
    const job = (await readActiveJobs(store())).find(({ id }) => id === jobId);
    if (!job) throw new Error(`the job ${jobId} has no slot`);
    const waiting = (await findUnserved(store(), store().clock.now())) ?? '';
    const { refused } = await preemptJob(store(), who, job, sharesOf(slots, 0, 30), waiting);
    return refused ?? 'done';
  };
  return { fill, begin, end, two, preempt };
}

/** Workers that are kept for accounts without any, or given up for them. */
export function fewWorkersSuite(store: () => TestStore): void {
  const { fill, begin, end, two, preempt } = stepsOf(store);
  beforeEach(async () => {
    do {
      for (const { id } of await readActiveJobs(store()))
        await settleJob(store(), holder, await theJob(store(), id), failed);
    } while (await startNext(store()));
  });

  it('keeps the last one for accounts that have none, whose turn it may be', async () => {
    const [big, small] = await two();
    await fill(big, 9);
    expect(await begin(3, 1)).to.deep.equal([big.accountId, big.accountId]);
    await fill(small, 2);
    expect(await begin(3, 1)).to.deep.equal([small.accountId]);
    await end(small.accountId);
    expect(await begin(3, 1)).to.deep.equal([small.accountId]);
    await end(big.accountId);
    expect(await begin(3, 1)).to.deep.equal([]);
    await end(small.accountId);
    expect(await begin(3, 1)).to.deep.equal([big.accountId]);
  });

  it('gives the kept one to the account that has waited longest, whatever its weight', async () => {
    const [heavy, light] = await two(50);
    await fill(light, 1);
    store().advance(1);
    await fill(heavy, 9);
    expect(await begin(1, 1)).to.deep.equal([light.accountId]);
  });

  it('lets one account have all while none is kept', async () => {
    const [alone] = await two();
    await fill(alone, 3);
    expect(await begin(2, 0)).to.deep.equal([alone.accountId, alone.accountId]);
  });

  it('gives the next one to an account that has waited too long without any, whatever the weight of another', async () => {
    const [heavy, light] = await two(50);
    await fill(light, 1);
    expect(await begin(1, 0)).to.deep.equal([light.accountId]);
    await fill(heavy, 9);
    await end(light.accountId);
    expect(await begin(1, 0)).to.deep.equal([heavy.accountId]);
    await fill(light, 1);
    await end(heavy.accountId);
    expect(await begin(1, 0), 'before its wait is over').to.deep.equal([heavy.accountId]);
    store().advance(30_000);
    await end(heavy.accountId);
    expect(await begin(1, 0)).to.deep.equal([light.accountId]);
  });

  it('goes on to other accounts when the one that waits longest has no waiting job', async () => {
    const [gone, waits] = await two();
    await fill(waits, 2);
    for (const kept of [1, 0]) {
      await store().connection.send(['ZADD', keys.ready, String(unservedFrom), `@${gone.accountId}`]);
      await begin(1, kept);
      expect(await begin(1, kept)).to.deep.equal([]);
      const active = await readActiveJobs(store());
      expect(active.map(({ account }) => account)).to.deep.equal([waits.accountId]);
      await end(waits.accountId);
    }
  });

  it('D74: interrupts a job once, by the leader, after the wait of an account without any', async () => {
    const [big, small] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [first = '', second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    expect(await preempt(second), 'while nobody waits').to.equal('unneeded');
    await fill(small, 1);
    expect(await preempt(second), 'before the wait is over').to.equal('unneeded');
    expect(await findUnserved(store(), store().clock.now() - 30_000)).to.equal(null);
    store().advance(30_000);
    expect(await findUnserved(store(), store().clock.now() - 30_000)).to.equal(small.accountId);
    expect(await preempt(second, 3), 'while one is free').to.equal('unneeded');
    expect(await preempt(second, 2, 'another')).to.equal('not_leading');
    expect(await preempt(second)).to.equal('done');
    expect(await preempt(second), 'again').to.equal('stale');
    expect((await theJob(store(), second)).preempted).to.equal(1);
    const holds = (await readActiveJobs(store())).map(({ id, attempt, hold }) => [id, attempt, hold]);
    expect(holds).to.deep.equal([
      [first, 1, 'free'],
      [second, 1, 'leaving'],
    ]);
  });

  it('never interrupts a job that has recorded a live source, which cannot be repeated', async () => {
    const [big, small] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [, second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    const job = { id: second, account: big.accountId };
    const told = { progress: 1, speed_bytes: null, eta_seconds: null };
    for (const stage of ['record', 'convert']) await noteProgress(store(), job, 1, { ...told, stage });
    await fill(small, 1);
    store().advance(30_000);
    expect((await readActiveJobs(store())).map(({ hold }) => hold)).to.deep.equal(['free', 'recording']);
    expect(await preempt(second)).to.equal('stale');
  });

  it('interrupts no job for an account without a waiting one, and forgets that account', async () => {
    const [big, small] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [, second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    await store().connection.send(['ZADD', keys.ready, String(unservedFrom), `@${small.accountId}`]);
    expect(await preempt(second)).to.equal('unneeded');
    expect(await findUnserved(store(), store().clock.now())).to.equal(null);
  });

  it('D75: interrupts another job when the marked one waits for the object store', async () => {
    const [big, small] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [, second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    await fill(small, 1);
    store().advance(30_000);
    await preempt(second);
    await noteStoring(store(), holder, await theJob(store(), second), completed);
    expect((await readActiveJobs(store())).map(({ hold }) => hold)).to.deep.equal(['free', 'idle']);
  });

  /** Interrupts a job of `big`, lets `small` have its worker, and ends that one's job. */
  const yieldTo = async (small: Caller, jobId: string) => {
    await fill(small, 1);
    store().advance(30_000);
    expect(await preempt(jobId)).to.equal('done');
    const why = { counts: 'interruption', code: 'worker_lost', notBefore: 0 } as const;
    await retryJob(store(), holder, await theJob(store(), jobId), why);
    expect(await begin(2, 0)).to.deep.equal([small.accountId]);
    await end(small.accountId);
  };
  const holds = async () => (await readActiveJobs(store())).map(({ id, hold }) => [id, hold]);

  it('lets an account have all of them while one of its jobs can be interrupted, if need be with one that has not run', async () => {
    const [big, small] = await two();
    await fill(big, 4);
    await begin(2, 0);
    const [first = '', second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    await yieldTo(small, second);
    expect(await begin(2, 0), 'beside the first job').to.deep.equal([big.accountId]);
    expect(await holds()).to.have.deep.members([
      [first, 'free'],
      [second, 'bound'],
    ]);
    await yieldTo(small, first);
    expect(await begin(2, 0), 'when both were interrupted').to.deep.equal([big.accountId]);
    const beside = (await holds()).filter(([id]) => id !== second);
    expect(beside.map(([id, hold]) => [id === first, hold])).to.deep.equal([[false, 'free']]);
    await end(big.accountId);
    expect(await begin(2, 0), 'when the one that was interrupted has ended').to.deep.equal([big.accountId]);
    expect(await holds()).to.have.deep.members([...beside, [first, 'bound']]);
  });

  it('leaves one idle while no job can be interrupted, and lets them go on when there are more, after the next full pass', async () => {
    const [big, small] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [first = '', second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    await yieldTo(small, second);
    await begin(2, 0);
    await yieldTo(small, first);
    expect(await begin(2, 0), 'with two workers').to.deep.equal([]);
    expect(await begin(4, 0), 'without an offer').to.deep.equal([]);
    await offerTurns(store(), [big.accountId, 'nobody']);
    expect(await begin(2, 0), 'an offer alone').to.deep.equal([]);
    await offerTurns(store(), [big.accountId]);
    expect(await begin(4, 0), 'with four workers').to.deep.equal([big.accountId]);
  });

  const record = async (caller: Caller, id: string) => {
    const told = { progress: 1, speed_bytes: null, eta_seconds: null, stage: recordingStage };
    await noteProgress(store(), { id, account: caller.accountId }, 1, told);
  };
  const interrupt = async (jobId: string, slots = 2, who = holder) => {
    const job = (await readActiveJobs(store())).find(({ id }) => id === jobId);
    if (!job) throw new Error(`the job ${jobId} has no slot`);
    return (await interruptRecording(store(), who, job, sharesOf(slots, 0, 30))).refused ?? 'done';
  };

  it('interrupts a recording that has just begun, once, by the leader, while its account has them all', async () => {
    const [big, small] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [first = '', second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    await record(big, first);
    expect(await interrupt(second), 'before it records').to.equal('stale');
    await record(big, second);
    expect(await interrupt(second, 3), 'while one is free').to.equal('unneeded');
    expect(await interrupt(second, 2, 'another')).to.equal('not_leading');
    expect(await interrupt(second)).to.equal('done');
    expect(await interrupt(second), 'again').to.equal('stale');
    expect(await holds()).to.deep.equal([
      [first, 'recording'],
      [second, 'leaving'],
    ]);
    const why = { counts: 'interruption', code: 'worker_lost', notBefore: 0 } as const;
    await retryJob(store(), holder, await theJob(store(), second), why);
    expect(await begin(2, 0), 'beside the other recording').to.deep.equal([]);
    await fill(small, 1);
    expect(await begin(2, 0)).to.deep.equal([small.accountId]);
    await end(small.accountId);
    await end(big.accountId);
    expect(await begin(2, 0), 'after the other recording').to.deep.equal([big.accountId]);
  });

  it('interrupts no recording that would lose a minute', async () => {
    const [big] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [first = '', second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    for (const id of [first, second]) await record(big, id);
    store().advance(60_000);
    expect(await interrupt(second)).to.equal('stale');
  });

  it('lets the only account record on all of them, and try again there', async () => {
    const [big] = await two();
    await fill(big, 2);
    await begin(2, 0);
    const [first = '', second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
    for (const id of [first, second]) await record(big, id);
    const others = `${keys.slugs}:others`;
    await store().connection.send(['RENAME', keys.slugs, others]);
    try {
      await store().connection.send(['HSET', keys.slugs, 'only', big.accountId]);
      expect(await interrupt(second)).to.equal('unneeded');
      const why = { counts: 'failure', code: 'source_error', notBefore: 0 } as const;
      await retryJob(store(), holder, await theJob(store(), second), why);
      expect(await begin(2, 0)).to.deep.equal([big.accountId]);
    } finally {
      await store().connection.send(['RENAME', others, keys.slugs]);
    }
  });
}
