import { expect } from 'chai';
import type { StageTime } from '../../src/model/attempt-stages.ts';
import { readTimeline } from '../../src/store/job-timeline.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { readStored } from '../../src/store/jobs/read-job.ts';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { retryJob } from '../../src/store/jobs/retry-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';

const progress = { progress: 10, stage: 'fetch', speed_bytes: null, eta_seconds: null };
const early: StageTime[] = [
  { stage: 'inspect', ms: 300 },
  { stage: 'fetch', ms: 65_400 },
];
const whole: StageTime[] = [
  { stage: 'inspect', ms: 300 },
  { stage: 'fetch', ms: 125_000 },
  { stage: 'convert', ms: 40 },
  { stage: 'prove', ms: 12 },
  { stage: 'upload', ms: 1_960 },
];
const done = { is: 'done', metadata: {}, delivered: null } as unknown as Parameters<typeof recordVerdict>[3];

describe('the stages of a job', () => {
  let store: TestStore;
  eachWithEmptyRecord((given) => {
    store = given;
  });

  const running = async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    store.advance(200_000);
    return job;
  };
  /** What the timeline says of the stages, and how long after the creation of the job each began. */
  const told = async (jobId: string) => {
    const stored = (await readStored(store, jobId))!;
    const events = await readTimeline(store, stored);
    const stages = events.filter(({ source }) => source === 'stage');
    return { texts: stages.map(({ text }) => text), times: stages.map(({ at }) => at - stored.job.created_at), events };
  };

  it('are told while the attempt goes on, each with its duration', async () => {
    const job = await running();
    await noteProgress(store, job, 1, { ...progress, stages: early.slice(0, 1) });
    expect((await told(job.id)).texts).to.deep.equal(['Reading the page takes 300 ms so far']);
    await noteProgress(store, job, 1, { ...progress, stages: early });
    const { texts } = await told(job.id);
    expect(texts).to.deep.equal(['Reading the page took 300 ms', 'Downloading takes 1 min 5 s so far']);
  });

  it('stay with the job after its end, in their order between its beginning and its end', async () => {
    const job = await running();
    await noteProgress(store, job, 1, { ...progress, stages: early });
    await recordVerdict(store, job.id, 1, done, whole);
    // A report that waited at another controller.
    await noteProgress(store, job, 1, { ...progress, stages: early });
    await settleJob(store, holder, job, completed);
    const { texts, times, events } = await told(job.id);
    expect(texts).to.deep.equal([
      'Reading the page took 300 ms',
      'Downloading took 2 min 5 s',
      'Converting took 40 ms',
      'Checking the file took 12 ms',
      'Storing the file took 2.0 s',
    ]);
    const beganAt = times[0]!;
    expect(times.map((at) => at - beganAt)).to.deep.equal([0, 300, 125_300, 125_340, 125_352]);
    expect(beganAt + 127_312).to.be.at.least(200_000);
    const sources = events.map(({ source }) => source);
    expect(sources.indexOf('stage')).to.be.above(sources.indexOf('attempt'));
    expect(sources.lastIndexOf('attempt')).to.be.above(sources.lastIndexOf('stage'));
    const ends = events.map(({ text }) => text).filter((text) => text.includes('ends:'));
    expect(ends[0]).to.equal('Attempt 1 ends: completed; its stages took 2 min 7 s in all');
  });

  it('are those of each attempt, with the reason why it ended', async () => {
    const job = await running();
    await noteProgress(store, job, 1, { ...progress, stages: early });
    const why = { counts: 'interruption', code: 'worker_lost', text: 'the node "a" went away', notBefore: 0 } as const;
    expect((await retryJob(store, holder, job, why)).done).to.equal(true);
    const { job: waiting, attempts } = (await readStored(store, job.id))!;
    expect(attempts.at(-1)).to.deep.include({ counts: 'interruption', reason: 'the node "a" went away' });
    const texts = ['Reading the page took 300 ms', 'Downloading was not finished after 1 min 5 s'];
    expect((await told(job.id)).texts).to.deep.equal(texts);
    await cancelJob(store, waiting);
    expect((await told(job.id)).texts).to.deep.equal(texts);
  });

  it('are none where a worker told none, and a job that was cancelled keeps those of its open attempt', async () => {
    const silent = await running();
    await noteProgress(store, silent, 1, progress);
    await settleJob(store, holder, silent, completed);
    expect((await told(silent.id)).texts).to.deep.equal([]);
    const job = await running();
    await noteProgress(store, job, 1, { ...progress, stages: early });
    await cancelJob(store, job);
    expect((await told(job.id)).texts).to.have.length(2);
  });
});
