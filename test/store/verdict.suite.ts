import { expect } from 'chai';
import type { Job } from '../../src/model/job.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { channels } from '../../src/store/keys.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import {
  admitted,
  anAccount,
  aRunningJob,
  completed,
  failed,
  holder,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';
import { until } from '../support/until.ts';

const done: Outcome = { is: 'done', metadata: someMetadata, delivered: someDelivered(1) };
const cutOff: Outcome = { is: 'interrupted', reason: 'it was told to stop' };

/** The verdict of a worker, kept for the leader. */
export function verdictSuite(store: () => TestStore): void {
  const tell = ({ id }: Pick<Job, 'id'>, attempt: number, verdict = done) =>
    recordVerdict(store(), id, attempt, verdict);
  const verdictOf = async ({ id }: Pick<Job, 'id'>) => (await theJob(store(), id)).verdict;
  const aJob = async () => aRunningJob(store(), await anAccount(store(), { credits: 1 }));

  it('is recorded as often as it is told, and the last one counts', async () => {
    const job = await aJob();
    expect(await tell(job, 1, cutOff)).to.deep.equal({ done: true });
    for (let time = 0; time < 2; time++) expect(await tell(job, 1)).to.deep.equal({ done: true });
    expect(await theJob(store(), job.id)).to.deep.equal({ ...job, verdict: done });
  });

  it('publishes a hint for the leader', async () => {
    const heard: string[] = [];
    const leave = await store().connection.subscribe(channels.work, (id) => heard.push(id));
    const job = await aJob();
    heard.length = 0;
    await tell(job, 1);
    await until(() => heard.includes(job.id), 5, 'the hint is heard');
    await leave();
  });

  it('is refused for an attempt that is not the last one, has not begun or is counted, and for an unknown job', async () => {
    const job = await aJob();
    for (const attempt of [0, 2])
      expect(await tell(job, attempt), `attempt ${attempt}`).to.deep.equal({ refused: 'stale' });
    expect(await tell({ id: 'none' }, 1)).to.deep.equal({ refused: 'not_found' });
    await retryJob(store(), holder, job, { counts: 'failure', code: 'timeout', notBefore: 0 });
    expect(await tell(job, 1), 'of a counted attempt').to.deep.equal({ refused: 'stale' });
    expect(await verdictOf(job)).to.equal(null);
    await cancelJob(store(), job);
    const waiting = await admitted(store(), await anAccount(store(), { credits: 1, concurrency: 0 }));
    expect(await tell({ id: waiting }, 0), 'before the first attempt').to.deep.equal({ refused: 'stale' });
  });

  it('is removed when its attempt is counted, and the next attempt has none', async () => {
    const job = await aJob();
    await tell(job, 1, cutOff);
    await retryJob(store(), holder, job, { counts: 'interruption', code: 'worker_lost', notBefore: 0 });
    expect(await verdictOf(job)).to.equal(null);
    while ((await takeJob(store(), holder, 1_000_000)) !== job.id);
    await startAttempt(store(), holder, job, 2);
    expect(await tell(job, 1), 'of the first attempt').to.deep.equal({ refused: 'stale' });
    expect(await verdictOf(job)).to.equal(null);
    expect(await tell(job, 2)).to.deep.equal({ done: true });
    // Beginning the same attempt again takes nothing back.
    await startAttempt(store(), holder, job, 2);
    expect(await verdictOf(job)).to.deep.equal(done);
  });

  it('is removed when its job ends, and refused after that', async () => {
    const [settled, lost, cancelled] = [await aJob(), await aJob(), await aJob()];
    for (const job of [settled, lost, cancelled]) await tell(job, 1);
    await settleJob(store(), holder, settled, completed);
    await settleJob(store(), holder, lost, failed);
    await cancelJob(store(), cancelled);
    for (const job of [settled, lost, cancelled]) {
      expect(await tell(job, 1)).to.deep.equal({ refused: 'already_ended' });
      expect(await verdictOf(job)).to.equal(null);
    }
  });
}
