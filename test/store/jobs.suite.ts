import { expect } from 'chai';
import { pollJob } from '../../src/store/access/poll-job.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { noteStoring } from '../../src/store/jobs/note-storing.ts';
import { requeueDelayed } from '../../src/store/jobs/requeue-delayed.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { readLines } from '../../src/store/log/read-lines.ts';
import { readMinutes } from '../../src/store/log/read-minutes.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  failed,
  holder,
  startNext,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';
import { readAttempts } from '../support/stored-job.ts';

const webhook = { url: 'https://example.com/hook', receiver: 'example.com', authorization: 'sealed' };

/** The life of a job in the record, from its turn to its end. */
export function jobsSuite(store: () => TestStore): void {
  const books = async (account: string) => (await readSnapshot(store(), account)).balances;
  const drain = async () => {
    while (await startNext(store()));
  };

  it('charges once for 100 simultaneous settles: one ledger entry, one log line, one webhook', async () => {
    const caller = await anAccount(store(), { credits: 3 });
    const job = await aRunningJob(store(), caller, { work: { ...aDownload, webhook } });
    const answers = await Promise.all([...Array(100)].map(() => settleJob(store(), holder, job, completed)));
    expect(answers.filter(({ done }) => done)).to.deep.equal([{ done: true, balance: 'credits' }]);
    expect(await readLedger(store(), caller.accountId, 10)).to.have.length(2);
    expect((await readLines(store(), caller.accountId, 10)).map((line) => [line.status, line.credits])).to.deep.equal([
      [201, 1],
    ]);
    const members = (await store().connection.read(['ZRANGE', keys.webhooks, '0', '-1'])) as string[];
    expect(members.filter((member) => member.endsWith(job.id))).to.deep.equal([`example.com/${job.id}`]);
    expect(await books(caller.accountId)).to.deep.include({ credits_consumed: 1, held: 0 });
    expect(await theJob(store(), job.id)).to.deep.include({
      status: 'CompletedJob',
      progress: 100,
      metadata: { title: 'A film' },
    });
  });

  it('billing-3: releases the hold of a failed job and charges nothing', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    await settleJob(store(), holder, job, failed);
    expect(await books(caller.accountId)).to.deep.include({ credits_consumed: 0, held: 0 });
    expect((await readLines(store(), caller.accountId, 10)).map((line) => [line.status, line.credits])).to.deep.equal([
      [400, 0],
    ]);
    expect(await theJob(store(), job.id)).to.deep.include({
      status: 'Error',
      error_code: 'private',
      error: failed.text,
    });
  });

  it('job-statuses: lets one of a racing success, failure and cancel win', async () => {
    for (let round = 0; round < 20; round++) {
      const caller = await anAccount(store(), { credits: 1 });
      const job = await aRunningJob(store(), caller);
      await Promise.all([
        settleJob(store(), holder, job, failed),
        cancelJob(store(), job),
        settleJob(store(), holder, job, completed),
      ]);
      const { status } = await theJob(store(), job.id);
      const { credits_consumed, held } = await books(caller.accountId);
      expect([credits_consumed, held]).to.deep.equal([status === 'CompletedJob' ? 1 : 0, 0]);
      expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
      expect(await readLines(store(), caller.accountId, 10)).to.have.length(1);
    }
  });

  it('gives an attempt its deadline when its worker begins to run, once', async () => {
    const job = await aRunningJob(store(), await anAccount(store(), { credits: 1 }));
    const told = { progress: 0, stage: 'No node has room', speed_bytes: null, eta_seconds: null, lastsMs: 60_000 };
    await noteProgress(store(), job, 1, { ...told, running: false });
    expect((await theJob(store(), job.id)).deadline).to.equal(null);
    const before = store().clock.now();
    await noteProgress(store(), job, 1, told);
    const { deadline } = await theJob(store(), job.id);
    expect(deadline).to.be.within(before + 59_000, before + 120_000);
    await noteProgress(store(), job, 1, { ...told, lastsMs: 9_000_000 });
    expect((await theJob(store(), job.id)).deadline).to.equal(deadline);
    await retryJob(store(), holder, job, { counts: 'interruption', code: 'worker_lost', notBefore: 0 });
    expect((await theJob(store(), job.id)).deadline).to.equal(null);
  });

  it('begins each attempt once and in its order', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    const again = await startAttempt(store(), holder, job, 1);
    expect(again).to.deep.equal({ done: true });
    expect(await startAttempt(store(), holder, job, 3)).to.deep.equal({ refused: 'stale' });
    expect(await startAttempt(store(), holder, { id: 'none' }, 1)).to.deep.equal({ refused: 'not_found' });
    const waiting = await anAccount(store(), { credits: 1, concurrency: 0 });
    const untaken = await theJob(store(), await admitted(store(), waiting));
    expect(await startAttempt(store(), holder, untaken, 1)).to.deep.equal({ refused: 'stale' });
    await cancelJob(store(), untaken);
    await settleJob(store(), holder, job, failed);
    expect(await startAttempt(store(), holder, job, 2)).to.deep.equal({ refused: 'already_ended' });
  });

  it('D20: lets progress rise only, at most to 99, and only for the attempt that runs', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    const note = (progress: number, attempt = 1) =>
      noteProgress(store(), job, attempt, { progress, stage: 'fetch', speed_bytes: 10, eta_seconds: null });
    expect(await note(40.7)).to.deep.equal({ done: true });
    const noted = await theJob(store(), job.id);
    expect(noted).to.deep.include({
      status: 'Running',
      progress: 40,
      stage: 'fetch',
      speed_bytes: 10,
      eta_seconds: null,
    });
    expect(noted.started_at).to.be.a('number');
    for (const [reported, raised] of [
      [12, 40],
      [-5, 40],
      [41, 41],
      [98, 98],
      [99.9, 99],
      [12, 99],
      [250, 99],
    ] as const) {
      await note(reported);
      expect((await theJob(store(), job.id)).progress, `after a report of ${reported}`).to.equal(raised);
    }
    expect(await note(50, 2)).to.deep.equal({ refused: 'stale' });
    await settleJob(store(), holder, job, failed);
    expect(await note(99)).to.deep.equal({ refused: 'already_ended' });
    expect((await theJob(store(), job.id)).progress).to.equal(99);
  });

  it('frees the slot of a job between two attempts, and starts it before others after its back-off', async () => {
    await drain();
    const caller = await anAccount(store(), { credits: 3, concurrency: 1 });
    const job = await aRunningJob(store(), caller);
    const second = await admitted(store(), caller);
    expect(await startNext(store())).to.equal(null);
    const why = { counts: 'failure', code: 'source_error', notBefore: store().clock.now() + 5000 } as const;
    expect(await retryJob(store(), holder, job, why)).to.deep.equal({ done: true });
    expect(await retryJob(store(), holder, job, why)).to.deep.equal({ refused: 'stale' });
    expect((await startNext(store()))?.id).to.equal(second);
    expect(await requeueDelayed(store())).to.equal(0);
    store().advance(5001);
    expect(await requeueDelayed(store())).to.equal(1);
    await settleJob(store(), holder, await theJob(store(), second), failed);
    const again = await startNext(store());
    expect(again).to.deep.include({ id: job.id, attempt: 2, failures: 1, interruptions: 0 });
    expect(await settleJob(store(), holder, job, failed)).to.deep.equal({ refused: 'stale' });
    await retryJob(store(), holder, again!, { counts: 'interruption', code: 'worker_lost', notBefore: 0 });
    expect(await startNext(store())).to.deep.include({ id: job.id, attempt: 3, failures: 1, interruptions: 1 });
    await settleJob(store(), holder, await theJob(store(), job.id), completed);
    expect(await books(caller.accountId)).to.deep.include({ held: 0, credits_consumed: 1 });
  });

  it('counts an attempt once, and completes a job by an open attempt alone', async () => {
    await drain();
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    const why = { counts: 'failure', code: 'timeout', notBefore: 0 } as const;
    expect(await retryJob(store(), holder, job, why)).to.deep.equal({ done: true });
    const late = { progress: 50, stage: 'fetch', speed_bytes: 10, eta_seconds: null };
    expect(await noteProgress(store(), job, 1, late)).to.deep.equal({ refused: 'stale' });
    expect(await takeJob(store(), holder, 1_000_000)).to.equal(job.id);
    expect(await retryJob(store(), holder, job, why)).to.deep.equal({ refused: 'stale' });
    expect(await settleJob(store(), holder, job, completed)).to.deep.equal({ refused: 'stale' });
    expect(await theJob(store(), job.id)).to.deep.include({ attempt: 1, failures: 1, ended_at: null });
    await cancelJob(store(), job);
    expect((await readAttempts(store(), job.id)).map(({ code }) => code)).to.deep.equal([undefined, 'timeout']);
    expect(await books(caller.accountId)).to.deep.include({ held: 0, credits_consumed: 0 });
  });

  it('ends neither a job nor an attempt for its age before TIME of the script has reached it', async () => {
    await drain();
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    const dueAt = store().clock.now() + 60_000;
    const why = { counts: 'failure', code: 'timeout', notBefore: 0, dueAt } as const;
    for (const step of [
      () => retryJob(store(), holder, job, why),
      () => settleJob(store(), holder, job, { ...failed, dueAt }),
    ]) {
      const early = await step();
      expect(early).to.include({ refused: 'early' });
      expect(early)
        .to.have.property('now')
        .within(dueAt - 60_000, dueAt - 1);
    }
    expect(await theJob(store(), job.id)).to.deep.include({ failures: 0, ended_at: null, revision: job.revision });
    store().advance(60_000);
    expect(await settleJob(store(), holder, job, { ...failed, dueAt })).to.include({ done: true });
    expect(await retryJob(store(), holder, job, why)).to.deep.equal({ refused: 'already_ended' });
  });

  it('completes no job that was never started', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const job = await theJob(store(), await admitted(store(), caller));
    expect(await settleJob(store(), holder, job, completed)).to.deep.equal({ refused: 'stale' });
    expect(await settleJob(store(), holder, job, failed)).to.deep.equal({ done: true, balance: '' });
  });

  it('counts no negative duration when the clock has gone back', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    store().advance(5000);
    const job = await aRunningJob(store(), caller);
    store().advance(-5000);
    await settleJob(store(), holder, job, completed);
    expect((await readLines(store(), caller.accountId, 1)).map((line) => line.duration_ms)).to.deep.equal([0]);
  });

  it('cancels a queued, a delayed and a running job, and releases each hold once', async () => {
    const caller = await anAccount(store(), { credits: 3 });
    const running = await aRunningJob(store(), caller);
    const delayed = await aRunningJob(store(), caller);
    await retryJob(store(), holder, delayed, {
      counts: 'failure',
      code: 'timeout',
      notBefore: store().clock.now() + 9e6,
    });
    const waiting = await theJob(store(), await admitted(store(), caller));
    for (const job of [running, delayed, waiting]) {
      expect(await cancelJob(store(), job)).to.deep.equal({ done: true });
      expect(await cancelJob(store(), job)).to.deep.equal({ refused: 'already_ended' });
    }
    expect(await books(caller.accountId)).to.deep.include({ held: 0, credits_consumed: 0 });
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
    const fields = (await store().connection.read(['HMGET', keys.account(caller.accountId), 'running'])) as string[];
    expect(fields).to.deep.equal(['0']);
    for (const key of [keys.openWork, keys.queue(caller.accountId)]) {
      const members = (await store().connection.read(['ZRANGE', key, '0', '-1'])) as string[];
      expect(members.filter((id) => [running.id, delayed.id, waiting.id].includes(id))).to.deep.equal([]);
    }
  });

  it('D75: keeps the first time since which a job is storing', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const job = await aRunningJob(store(), caller);
    const first = await noteStoring(store(), holder, job, { metadata: { title: 'x' }, delivered: completed.delivered });
    const since = first.done && first.since;
    store().advance(60_000);
    expect(await noteStoring(store(), holder, job, { metadata: {}, delivered: {} })).to.deep.equal({
      done: true,
      since,
    });
    expect(await theJob(store(), job.id)).to.deep.include({ storing_since: since, delivered: completed.delivered });
    await settleJob(store(), holder, job, failed);
  });

  it('D52: counts ended jobs for the statistics, and a 500 as a failure', async () => {
    const before = await readMinutes(store(), 'video');
    const caller = await anAccount(store(), { credits: 2 });
    await settleJob(store(), holder, await aRunningJob(store(), caller), completed);
    await settleJob(store(), holder, await aRunningJob(store(), caller), { ...failed, log: 500 });
    const sum = (minutes: typeof before, field: 'count' | 'good') => minutes.reduce((all, one) => all + one[field], 0);
    const after = await readMinutes(store(), 'video');
    expect(sum(after, 'count') - sum(before, 'count')).to.equal(2);
    expect(sum(after, 'good') - sum(before, 'good')).to.equal(1);
  });

  it('returns the position of a job in the queue of its account', async () => {
    await drain();
    const caller = await anAccount(store(), { credits: 5, concurrency: 0 });
    const ids = [];
    for (let n = 0; n < 3; n++) {
      ids.push(await admitted(store(), caller));
      store().advance(1);
    }
    for (const [n, id] of ids.entries()) {
      expect(await pollJob(store(), caller, id)).to.have.nested.property('position.before', n);
    }
    await setAccount(store(), caller.accountId, { concurrency: 1 });
    expect((await startNext(store()))?.id).to.equal(ids[0]);
    expect(await pollJob(store(), caller, ids[2]!)).to.have.nested.property('position.before', 1);
  });
}
