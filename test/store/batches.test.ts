import { expect } from 'chai';
import { admitBatch } from '../../src/store/access/admit-batch.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { endBatch } from '../../src/store/batches/end-batch.ts';
import { readBatch, summarizeBatch } from '../../src/store/batches/read-batch.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { dropFile } from '../../src/store/jobs/kept-files.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { dueWebhooks } from '../../src/store/webhooks/due-webhooks.ts';
import { aBatch, anAdmittedBatch, cancelJobs } from '../support/batch-scenarios.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, completed, holder, lead, startNext, type TestStore, theJob } from '../support/record.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day, line: 90 * day };
const webhook = { url: 'https://example.com/hook', receiver: 'a@example.com/hook', authorization: '' };

describe('batches of the record', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  beforeEach(() => lead(store, holder));

  const heldOf = async (account: string) => (await readSnapshot(store, account)).balances.held;
  const summaryOf = async (id: string) => summarizeBatch(store, (await readBatch(store, id))!);

  it('holds a credit for each of 1,000 items at once, and starts them in their order', async () => {
    const caller = await anAccount(store, { credits: 1_000 });
    const { id, items } = await anAdmittedBatch(store, caller, 1_000);
    expect(await heldOf(caller.accountId)).to.equal(1_000);
    expect((await readBatch(store, id))?.jobIds).to.deep.equal(items.map(({ jobId }) => jobId));
    const queued = await store.connection.read(['ZRANGE', keys.queue(caller.accountId), '0', '-1']);
    expect(queued).to.deep.equal(items.map(({ jobId }) => jobId));
    const job = (await startNext(store))!;
    expect(job.id).to.equal(items[0]?.jobId);
    await noteProgress(store, job, 1, { progress: 7, stage: 'x', speed_bytes: 1, eta_seconds: 2 });
    expect(await summaryOf(id)).to.deep.equal({
      id,
      status: 'Running',
      counts: { queued: 999, running: 1, completed: 0, failed: 0 },
      credits: { held: 1_000, charged: 0 },
    });
  });

  it('answers a batch that was admitted before again, and holds nothing twice', async () => {
    const caller = await anAccount(store, { credits: 10 });
    const wanted = aBatch(4, { repeat: { key: 'k', request: 'r' } });
    const [first, again] = [await admitBatch(store, caller, wanted), await admitBatch(store, caller, wanted)];
    expect([first, again].map((one) => 'admitted' in one && one.admitted)).to.deep.equal([wanted.id, wanted.id]);
    const repeated = await admitBatch(store, caller, { ...aBatch(4), repeat: wanted.repeat });
    expect(repeated).to.deep.include({ repeated: wanted.id });
    const other = await admitBatch(store, caller, { ...aBatch(4), repeat: { key: 'k', request: 'other' } });
    expect(other).to.deep.include({ refused: 'idempotency_conflict' });
    expect(await heldOf(caller.accountId)).to.equal(4);
  });

  it('refuses all items when credits, open jobs or a quota of the key do not last for all of them', async () => {
    const refusals: [Parameters<typeof anAccount>[1], string, string][] = [
      [{ credits: 3 }, 'payment_required', ''],
      [{ credits: 9, max_open: 3 }, 'rate_limited', 'open-jobs'],
      [{ credits: 9, quotas: { total: 3 } }, 'key_quota_exceeded', 'total'],
      [{ credits: 9, quotas: { daily: 3 } }, 'key_quota_exceeded', 'daily'],
    ];
    for (const [wanted, refused, detail] of refusals) {
      const caller = await anAccount(store, wanted);
      expect(await admitBatch(store, caller, aBatch(4))).to.deep.include({ refused, detail });
      expect(await heldOf(caller.accountId)).to.equal(0);
      await anAdmittedBatch(store, caller, 3);
      expect(await admitBatch(store, caller, aBatch(1))).to.deep.include({ refused });
    }
  });

  it('are refused without a Retry-After when they have more items than a rolling quota of the key ever allows', async () => {
    const caller = await anAccount(store, { credits: 9, quotas: { daily: 3, monthly: 9 } });
    const refused = { refused: 'key_quota_exceeded', detail: 'daily' };
    expect(await admitBatch(store, caller, aBatch(4))).to.deep.include({ ...refused, retryAfterSeconds: null });
    await admitBatch(store, caller, aBatch(2));
    const answer = await admitBatch(store, caller, aBatch(3));
    expect(answer).to.deep.include(refused);
    expect('refused' in answer && answer.retryAfterSeconds).to.be.above(86_000);
  });

  it('D98: makes one webhook due when the last job has ended, and not before', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const { id, items } = await anAdmittedBatch(store, caller, 2, { webhook });
    const job = (await startNext(store))!;
    await settleJob(store, holder, job, completed);
    await sweepRecord(store, lifetimes);
    expect((await dueWebhooks(store, 9)).due).to.deep.equal([]);
    await cancelJob(store, await theJob(store, items[1]!.jobId));
    expect(await sweepRecord(store, lifetimes)).to.include({ endedBatches: 1 });
    expect(await sweepRecord(store, lifetimes)).to.include({ endedBatches: 0 });
    const { due } = await dueWebhooks(store, 9);
    expect(due.map(({ at: _, ...one }) => one)).to.deep.equal([{ receiver: webhook.receiver, id }]);
    expect(await summaryOf(id)).to.deep.equal({
      id,
      status: 'Completed',
      counts: { queued: 0, running: 0, completed: 1, failed: 1 },
      credits: { held: 0, charged: 1 },
    });
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
  });

  it('goes with its webhook after the lifetime of its jobs, and is not removed while one is open', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const { id } = await anAdmittedBatch(store, caller, 2, { webhook });
    store.advance(31 * day);
    await sweepRecord(store, lifetimes);
    expect(await endBatch(store, id)).to.equal(false);
    await cancelJobs(store, id);
    expect(await endBatch(store, id)).to.equal(true);
    await sweepRecord(store, lifetimes);
    expect(await readBatch(store, id)).not.to.equal(null);
    store.advance(31 * day);
    await sweepRecord(store, lifetimes);
    const left = [
      keys.batch(id),
      keys.openBatches,
      keys.endedBatches,
      keys.webhook(id),
      keys.webhooks,
      keys.deliveries(caller.accountId),
    ];
    expect(await store.connection.send(['EXISTS', ...left])).to.equal(0);
  });

  it('tells what was charged for it as long as it is kept, also when its first jobs are removed before it', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const { id, items } = await anAdmittedBatch(store, caller, 3);
    for (const _ of [1, 2]) {
      const job = (await startNext(store))!;
      await settleJob(store, holder, job, completed);
      await dropFile(store, job.id);
    }
    store.advance(day);
    await lead(store, holder);
    await cancelJob(store, await theJob(store, items[2]!.jobId));
    await sweepRecord(store, lifetimes);
    const atEnd = await summaryOf(id);
    store.advance(lifetimes.job - day + 1_000);
    expect(await sweepRecord(store, lifetimes)).to.include({ jobs: 2, batches: 0 });
    expect(await summaryOf(id)).to.deep.equal(atEnd);
    expect(atEnd).to.deep.include({
      counts: { queued: 0, running: 0, completed: 2, failed: 1 },
      credits: { held: 0, charged: 2 },
    });
  });

  it('counts the jobs that ended longer ago than an ended job is kept, while it runs', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const { id, items } = await anAdmittedBatch(store, caller, 3);
    const alone = await anAdmittedBatch(store, caller, 1);
    await cancelJobs(store, alone.id);
    for (const _ of [1, 2]) {
      const job = (await startNext(store))!;
      await settleJob(store, holder, job, completed);
      await dropFile(store, job.id);
    }
    const short = { ...lifetimes, job: 60_000 };
    await sweepRecord(store, short);
    store.advance(short.job + 1_000);
    expect(await sweepRecord(store, short)).to.include({ jobs: 1 });
    await lead(store, holder);
    await cancelJob(store, await theJob(store, items[2]!.jobId));
    expect(await sweepRecord(store, short)).to.include({ endedBatches: 1, jobs: 2 });
    const counts = { queued: 0, running: 0, completed: 2, failed: 1 };
    expect(await summaryOf(id)).to.deep.include({ counts, credits: { held: 0, charged: 2 } });
  });

  it('ends before the sweep removes old jobs, however many of them there are', async () => {
    const caller = await anAccount(store, { credits: 10 });
    await cancelJobs(store, (await anAdmittedBatch(store, caller, 3)).id);
    await sweepRecord(store, lifetimes);
    store.advance(lifetimes.job + 1_000);
    const { id } = await anAdmittedBatch(store, caller, 1);
    await cancelJobs(store, id);
    let steps = 1;
    const swept = await sweepRecord(store, lifetimes, { report: () => {}, goOn: () => steps-- > 0 });
    expect(swept).to.include({ endedBatches: 1, jobs: 0 });
  });
});
