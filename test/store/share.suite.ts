import { expect } from 'chai';
import { sharesOf } from '../../src/model/preemption.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { findUnserved, listActive, readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { preemptJob } from '../../src/store/jobs/preempt-job.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { makeTake } from '../../src/store/jobs/take-jobs.ts';
import { keys } from '../../src/store/keys.ts';
import {
  admitted,
  anAccount,
  completed,
  failed,
  holder,
  lead,
  startNext,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';

/** Whose turn it is. */
export function shareSuite(store: () => TestStore): void {
  beforeEach(async () => {
    while (await startNext(store()));
  });
  const fill = async (account: Parameters<typeof admitted>[1], jobs: number) => {
    for (let n = 0; n < jobs; n++) await admitted(store(), account);
  };
  const turns = async (many: number) => {
    const accounts: string[] = [];
    for (let n = 0; n < many; n++) accounts.push((await startNext(store()))?.account ?? 'nobody');
    return accounts;
  };
  const shareOf = (seen: readonly string[], account: string) => seen.filter((one) => one === account).length;

  it('takes jobs of accounts in turn, however many one account has queued', async () => {
    const [big, small] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 9 })];
    await fill(big, 40);
    await fill(small, 3);
    expect(shareOf(await turns(6), small.accountId)).to.equal(3);
  });

  it('starts a job of a new account at the next turn but one at the latest', async () => {
    const [big, late] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 1 })];
    await fill(big, 60);
    await turns(25);
    await fill(late, 1);
    expect(await turns(2)).to.include(late.accountId);
  });

  it('gives an account no turns for its idle time', async () => {
    const [busy, idle] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 99 })];
    await fill(busy, 50);
    await turns(25);
    await fill(idle, 12);
    expect(shareOf(await turns(10), idle.accountId)).to.be.within(4, 6);
  });

  it('gives turns in proportion to weight', async () => {
    const [heavy, light] = [
      await anAccount(store(), { credits: 99, weight: 3 }),
      await anAccount(store(), { credits: 99 }),
    ];
    await fill(heavy, 40);
    await fill(light, 40);
    expect(shareOf(await turns(24), heavy.accountId)).to.be.within(17, 19);
  });

  it('leaves the share of an account that is idle or at its own limit to the others', async () => {
    const [limited, other] = [
      await anAccount(store(), { credits: 99, concurrency: 2 }),
      await anAccount(store(), { credits: 99 }),
    ];
    await fill(limited, 10);
    await fill(other, 10);
    expect(shareOf(await turns(10), limited.accountId)).to.equal(2);
    await setAccount(store(), limited.accountId, { concurrency: 3 });
    expect(shareOf(await turns(2), limited.accountId)).to.equal(1);
  });

  it('starts the next job of a limited account when one has ended', async () => {
    const limited = await anAccount(store(), { credits: 9, concurrency: 1 });
    await fill(limited, 2);
    const first = await startNext(store());
    expect(await startNext(store())).to.equal(null);
    await settleJob(store(), holder, await theJob(store(), first!.id), failed);
    expect((await startNext(store()))?.account).to.equal(limited.accountId);
  });

  it('takes all jobs in fair turns within one run of takes, also one that is queued meanwhile', async () => {
    const [big, small] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 9 })];
    await fill(big, 6);
    await fill(small, 3);
    await lead(store(), holder);
    const take = makeTake(store(), holder, sharesOf(1_000_000, 0, 30));
    const all = async (ids: AsyncIterable<string>) => {
      const taken: string[] = [];
      for await (const id of ids) taken.push(id);
      return taken;
    };
    const taken: string[] = [];
    for await (const id of take()) {
      taken.push((await theJob(store(), id)).account);
      // The job is queued while the take is under way.
      if (taken.length === 8) await fill(small, 1);
    }
    expect(shareOf(taken.slice(0, 6), small.accountId)).to.equal(3);
    expect(taken).to.have.length(10);
    expect(await all(take())).to.deep.equal([]);
    await fill(small, 1);
    expect(await all(take())).to.have.length(1);
    await fill(big, 2);
    expect(await all(makeTake(store(), 'another', sharesOf(1_000_000, 0, 30))())).to.deep.equal([]);
    expect(await all(take())).to.have.length(2);
  });

  describe('of few workers', () => {
    beforeEach(async () => {
      do {
        for (const id of await listActive(store())) await settleJob(store(), holder, await theJob(store(), id), failed);
      } while (await startNext(store()));
    });
    /** Accounts of the jobs that begin now, one after another. */
    const begin = async (slots: number, kept: number) => {
      const accounts: string[] = [];
      for await (const id of makeTake(store(), holder, { slots, kept, maxWaitMs: 30_000 })()) {
        const job = await theJob(store(), id);
        await startAttempt(store(), holder, job, job.attempt + 1, store().clock.now() + 60_000);
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

    it('goes on to other accounts when a controller of the release before took the jobs of the one that waits longest', async () => {
      const [gone, waits] = await two();
      await fill(waits, 2);
      for (const kept of [1, 0]) {
        await store().connection.send(['ZADD', keys.unserved, '0', gone.accountId]);
        await begin(1, kept);
        expect(await begin(1, kept)).to.deep.equal([]);
        const active = await readActiveJobs(store());
        expect(active.map(({ account }) => account)).to.deep.equal([waits.accountId]);
        await end(waits.accountId);
      }
    });

    const preempt = async (jobId: string, slots = 2, who = holder) => {
      const job = (await readActiveJobs(store())).find(({ id }) => id === jobId);
      if (!job) throw new Error(`the job ${jobId} has no slot`);
      const waiting = (await findUnserved(store(), store().clock.now())) ?? '';
      const { refused } = await preemptJob(store(), who, job, sharesOf(slots, 0, 30), waiting);
      return refused ?? 'done';
    };

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
      expect((await readActiveJobs(store())).map(({ hold }) => hold)).to.deep.equal(['free', 'bound']);
      expect(await preempt(second)).to.equal('stale');
    });

    it('interrupts no job for an account without a waiting one, and forgets that account', async () => {
      const [big, small] = await two();
      await fill(big, 2);
      await begin(2, 0);
      const [, second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
      // As a controller of the previous release leaves it, which takes a job without a look at this set.
      await store().connection.send(['ZADD', keys.unserved, '1', small.accountId]);
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
      expect((await readActiveJobs(store())).map(({ hold }) => hold)).to.deep.equal(['free', 'bound']);
    });

    it('lets an account have all but one of them until its interrupted job has ended', async () => {
      const [big, small] = await two();
      await fill(big, 4);
      await begin(2, 0);
      const [, second = ''] = (await readActiveJobs(store())).map(({ id }) => id);
      await fill(small, 1);
      store().advance(30_000);
      await preempt(second);
      const why = { counts: 'interruption', code: 'worker_lost', notBefore: 0 } as const;
      await retryJob(store(), holder, await theJob(store(), second), why);
      expect(await begin(2, 0)).to.deep.equal([small.accountId]);
      await end(small.accountId);
      expect(await begin(2, 0), 'beside the first job').to.deep.equal([]);
      await end(big.accountId);
      expect(await begin(2, 0), 'the interrupted job').to.deep.equal([big.accountId]);
      expect((await readActiveJobs(store())).map(({ id, hold }) => [id, hold])).to.deep.equal([[second, 'bound']]);
      await end(big.accountId);
      expect(await begin(2, 0), 'when it has ended').to.deep.equal([big.accountId, big.accountId]);
    });
  });

  it('takes no more than the slots of the whole system', async () => {
    const caller = await anAccount(store(), { credits: 9 });
    await fill(caller, 2);
    await lead(store(), holder);
    expect(await takeJob(store(), holder, 0)).to.equal(null);
    expect(await takeJob(store(), holder, 1_000_000)).to.be.a('string');
  });
}
