import { hash } from 'node:crypto';
import { expect } from 'chai';
import { recordingStage } from '../../src/model/attempt-stages.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { offerTurns } from '../../src/store/jobs/offer-turns.ts';
import { readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { makeTake } from '../../src/store/jobs/take-jobs.ts';
import { keys } from '../../src/store/keys.ts';
import {
  admitted,
  anAccount,
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
  type Caller = Parameters<typeof admitted>[1];
  const fill = async (account: Caller, jobs: number) => {
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

  it('moves no turn when an account is offered one that it has', async () => {
    const [big, small] = [await anAccount(store(), { credits: 9 }), await anAccount(store(), { credits: 9 })];
    await fill(big, 3);
    await fill(small, 3);
    await turns(3);
    const ready = () => store().connection.read(['ZRANGE', keys.ready, '0', '-1', 'WITHSCORES']);
    const before = await ready();
    expect(before).to.have.length(4);
    await offerTurns(store(), [big.accountId, small.accountId]);
    expect(await ready()).to.deep.equal(before);
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

  it('takes no more than the slots of the whole system', async () => {
    const caller = await anAccount(store(), { credits: 9 });
    await fill(caller, 2);
    await lead(store(), holder);
    expect(await takeJob(store(), holder, 0)).to.equal(null);
    expect(await takeJob(store(), holder, 1_000_000)).to.be.a('string');
  });

  it('takes a job that was admitted at a whole millisecond for one that has not run', async () => {
    do {
      for (const { id } of await readActiveJobs(store()))
        await settleJob(store(), holder, await theJob(store(), id), failed);
    } while (await startNext(store()));
    const [big] = [await anAccount(store(), { credits: 9 }), await anAccount(store())];
    const { connection } = store();
    const evalAtWholeMs: typeof connection.eval = (lua, _, ...rest) => {
      const rounded = lua.replace(/^local clock = .*/m, '$&\nclock[2] = clock[2] - clock[2] % 1000');
      return connection.eval(rounded, hash('sha1', rounded), ...rest);
    };
    const ids: string[] = [];
    for (let n = 0; n < 3; n++)
      ids.push(await admitted({ ...store(), connection: { ...connection, eval: evalAtWholeMs } }, big));
    const told = { progress: 1, speed_bytes: null, eta_seconds: null, stage: recordingStage };
    const ran: string[] = [];
    while (ran.length < 2) {
      const { id = '' } = (await startNext(store())) ?? {};
      await noteProgress(store(), { id, account: big.accountId }, 1, told);
      ran.push(id);
    }
    const why = { counts: 'interruption', code: 'worker_lost', notBefore: 0 } as const;
    await retryJob(store(), holder, await theJob(store(), ran[1] ?? ''), why);
    // Both that ran cannot be interrupted, so the last worker is for one that can.
    expect(await takeJob(store(), holder, 2)).to.equal(ids.find((id) => !ran.includes(id)));
  });
}
