import { expect } from 'chai';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { listJobs } from '../../src/store/jobs/list-jobs.ts';
import { keys } from '../../src/store/keys.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { anAdmittedBatch } from '../support/batch-scenarios.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { runJob } from '../support/job-steps.ts';
import { anAccount, type TestStore, theJob } from '../support/record.ts';

describe('a list of jobs', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  /** The store, where something happens between the first look at an index and the next command. */
  const interrupted = (index: string, happen: () => Promise<unknown>): RecordStore => {
    let isOver = false;
    const read: TestStore['connection']['read'] = async (command) => {
      const reply = await store.connection.read(command);
      if (!isOver && command[1] === index && command.includes('LIMIT')) {
        isOver = true;
        await happen();
      }
      return reply;
    };
    return { ...store, connection: { ...store.connection, read } };
  };

  it('misses none of a batch, of which all have one millisecond, when one of them ends between two looks', async () => {
    const caller = await anAccount(store, { credits: 100 });
    const { items } = await anAdmittedBatch(store, caller, 60);
    const ids = items.map(({ jobId }) => jobId).sort();
    const cancel = async () => cancelJob(store, await theJob(store, ids.at(-1)!));
    let from = interrupted(keys.jobs(caller.accountId), cancel);
    const seen: string[] = [];
    for (let after = null; ; ) {
      const page: Awaited<ReturnType<typeof listJobs>> = await listJobs(from, caller.accountId, {
        status: undefined,
        limit: 20,
        after,
      });
      seen.push(...page.jobs.map(({ id }) => id));
      if (page.next === null) break;
      [from, after] = [store, page.next as never];
    }
    expect(seen).to.deep.equal(ids.toReversed());
  });

  it('finds the jobs that run behind thousands that wait, which came later', async () => {
    const caller = await anAccount(store, { credits: 3_000 });
    const [{ items }] = [await anAdmittedBatch(store, caller, 1), await anAdmittedBatch(store, caller, 999)];
    for (let n = 0; n < 2; n++) await anAdmittedBatch(store, caller, 1_000);
    const { id } = await runJob(store, items[0]!.jobId);
    const { jobs, next } = await listJobs(store, caller.accountId, { status: 'Running', limit: 20, after: null });
    expect(jobs.map((job) => job.id)).to.deep.equal([id]);
    expect(next).to.equal(null);
  });

  it('lists the newest jobs that have ended, and none that is open', async () => {
    const caller = await anAccount(store, { credits: 100 });
    const { items } = await anAdmittedBatch(store, caller, 40);
    const ids = items.map(({ jobId }) => jobId).sort();
    for (const id of ids.slice(0, 30)) await cancelJob(store, await theJob(store, id));
    const { jobs } = await listJobs(store, caller.accountId, { status: 'ended', limit: 20, after: null });
    expect(jobs.map(({ id }) => id)).to.deep.equal(ids.slice(10, 30).toReversed());
  });
});
