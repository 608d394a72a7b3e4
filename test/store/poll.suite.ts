import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Caller } from '../../src/store/access/authorize.ts';
import type { pollJob } from '../../src/store/access/poll-job.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { admitted, anAccount, type TestStore, theJob } from '../support/record.ts';

/** Polls: the authorization in front of them, and the jobs that they show. */
export function pollSuite(store: () => TestStore, poll: typeof pollJob): void {
  const pollAll = (caller: Caller, ids: readonly string[]) =>
    Promise.all(ids.map((jobId) => poll(store(), caller, jobId)));
  const wordOf = (one: Awaited<ReturnType<typeof poll>>) => ('refused' in one ? one.refused : one.job.id);

  it('answers simultaneous polls of one key each with its job, and counts each against the rate', async () => {
    const caller = await anAccount(store(), { credits: 5, perMinute: 6 });
    const id = await admitted(store(), caller);
    await poll(store(), caller, id);
    const foreign = await admitted(store(), await anAccount(store(), { credits: 1 }));
    const seen = await pollAll(caller, [id, foreign, randomUUID(), id]);
    expect(seen.map(wordOf)).to.deep.equal([id, 'not_found', 'not_found', id]);
    expect(seen.map((one) => one.rates.perMinute)).to.deep.equal([3, 2, 1, 0].map((left) => ({ limit: 6, left })));
    expect(seen.map((one) => one.rates.perSecond)).to.deep.equal([null, null, null, null]);
  });

  it('judges simultaneous polls of one key one after the other where its rate has no room for all', async () => {
    const caller = await anAccount(store(), { credits: 5, perMinute: 5 });
    const id = await admitted(store(), caller);
    await poll(store(), caller, id);
    const seen = await pollAll(caller, [id, id, id, id]);
    expect(seen.map(wordOf)).to.deep.equal([id, id, id, 'rate_limited']);
    expect(seen.map((one) => one.rates.perMinute?.left)).to.deep.equal([2, 1, 0, 0]);
  });

  it('shows jobs that wait and jobs that have ended, with the position of those that wait', async () => {
    const caller = await anAccount(store(), { credits: 5, concurrency: 1 });
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      ids.push(await admitted(store(), caller));
      store().advance(1);
    }
    await cancelJob(store(), await theJob(store(), ids[0]!));
    const seen = await pollAll(caller, ids);
    const told = seen.map((one) => 'job' in one && [one.job.id, one.job.status, one.position.before]);
    expect(told).to.deep.equal([
      [ids[0], 'Error', null],
      [ids[1], 'QueuedJob', 0],
      [ids[2], 'QueuedJob', 1],
    ]);
    expect(seen.map((one) => 'job' in one && one.position.concurrency)).to.deep.equal([1, 1, 1]);
  });

  it('refuses simultaneous polls of a suspended account, and marks its key as used', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const id = await admitted(store(), caller);
    await setAccount(store(), caller.accountId, { suspended: true });
    store().advance(60_000);
    expect((await pollAll(caller, [id, id])).map(wordOf)).to.deep.equal(['forbidden', 'forbidden']);
    const [key] = await listKeys(store(), caller.accountId);
    expect(key?.last_used_at).to.be.closeTo(store().clock.now(), 5000);
  });

  it('marks a key as used by simultaneous polls', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const id = await admitted(store(), caller);
    store().advance(60_000);
    await pollAll(caller, [id, id]);
    const [key] = await listKeys(store(), caller.accountId);
    expect(key?.last_used_at).to.be.closeTo(store().clock.now(), 5000);
  });

  it('refuses simultaneous polls with an unknown key', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const id = await admitted(store(), caller);
    const unknown = { ...caller, hash: 'f'.repeat(64) };
    expect((await pollAll(unknown, [id, id])).map(wordOf)).to.deep.equal(['invalid_api_key', 'invalid_api_key']);
  });
}
