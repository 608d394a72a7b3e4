import { expect } from 'chai';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { countCancelledJob } from '../../src/controller/job-metrics.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { readActiveJobs } from '../../src/store/jobs/open-work.ts';
import { preemptJob } from '../../src/store/jobs/preempt-job.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { jobLimits } from '../support/job-limits.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import {
  admitted,
  anAccount,
  aRunningJob,
  holder,
  lead,
  startNext,
  storeOf,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { readAttempts } from '../support/stored-job.ts';

describe('metrics of jobs', () => {
  let redis: TestRedis;
  let store: TestStore;
  before(async () => {
    redis = await startTestRedis();
  });
  beforeEach(() => {
    store = storeOf(redis.connection);
  });
  after(() => redis.stop());

  /** Ends the first attempt of a running job so, with a limit of failures, and returns what a scrape shows then. */
  const endOne = async (outcome: (jobId: string) => Outcome, limits: Partial<typeof jobLimits> = {}) => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const runner = aRunner({ [`${job.id}-1`]: outcome(job.id) });
    const metrics = makeMetrics();
    const see = async () => ({ bytes: someDelivered(1).bytes, checksum: someDelivered(1).sha256 });
    const objects = { finish: async () => false, see, remove: async () => {} };
    const advance = advanceWith(store, runner, { metrics, objects, limits: { ...jobLimits, ...limits } });
    for (let n = 0; n < 3; n++) await advance(job.id);
    return { job, metrics, advance, text: await renderMetrics(metrics) };
  };
  const done = (jobId: string): Outcome => {
    return { is: 'done', metadata: someMetadata, delivered: { ...someDelivered(1), key: `${jobId}/1/media.mp4` } };
  };
  const countsOf = (text: string) => text.split('\n').filter((line) => /^trawl_attempts_total.* [1-9]/.test(line));

  const ends: [title: string, outcome: (id: string) => Outcome, limits: Partial<typeof jobLimits>, counted: string][] =
    [
      ['a completed job as done', done, {}, 'done'],
      ['a failure that is retried as failed', () => ({ is: 'failed', code: 'source_error' }), {}, 'failed'],
      ['the last failure of a job as failed', () => ({ is: 'failed', code: 'private' }), {}, 'failed'],
      ['an interruption as interrupted', () => ({ is: 'interrupted', reason: 'gone' }), {}, 'interrupted'],
      [
        'one interruption too many as interrupted',
        () => ({ is: 'interrupted', reason: 'gone' }),
        { maxInterruptions: 0 },
        'interrupted',
      ],
    ];
  for (const [title, outcome, limits, counted] of ends) {
    it(`trawl_attempts_total counts ${title}, once`, async () => {
      const { text } = await endOne(outcome, limits);
      expect(countsOf(text)).to.deep.equal([`trawl_attempts_total{class="${counted}"} 1`]);
    });
  }

  it('trawl_attempts_total counts the attempt of a cancelled job as cancelled, not as interrupted, once', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const metrics = makeMetrics();
    const advance = advanceWith(store, aRunner({}, [`${job.id}-1`]), { metrics });
    await advance(job.id);
    await cancelJob(store, job);
    for (let n = 0; n < 2; n++) await advance(job.id);
    expect(countsOf(await renderMetrics(metrics))).to.deep.equal(['trawl_attempts_total{class="cancelled"} 1']);
  });

  it('trawl_attempts_total counts an attempt that makes room for another account as preempted, not as interrupted', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    while ((await startNext(store)) !== null);
    const waiting = await anAccount(store, { credits: 1 });
    await admitted(store, waiting);
    store.advance(1_000);
    const active = (await readActiveJobs(store)).find(({ id }) => id === job.id)!;
    await lead(store, holder);
    const shares = { slots: 1, kept: 0, maxWaitMs: 10 };
    expect((await preemptJob(store, holder, active, shares, waiting.accountId)).done).to.equal(true);
    const metrics = makeMetrics();
    await advanceWith(store, aRunner({}, [`${job.id}-1`]), { metrics })(job.id);
    expect(countsOf(await renderMetrics(metrics))).to.deep.equal(['trawl_attempts_total{class="preempted"} 1']);
  });

  it('trawl_attempts_total counts an attempt that is cancelled before its worker could be started, once', async () => {
    const job = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== job);
    const metrics = makeMetrics();
    const runner = aRunner({});
    runner.refuse = 'the API server is away';
    const advance = advanceWith(store, runner, { metrics });
    await advance(job).catch(() => undefined);
    await cancelJob(store, await theJob(store, job));
    for (let n = 0; n < 2; n++) await advance(job);
    expect(countsOf(await renderMetrics(metrics))).to.deep.equal(['trawl_attempts_total{class="cancelled"} 1']);
  });

  it('trawl_attempts_total does not count an end that another controller has recorded', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const metrics = makeMetrics();
    const runner = aRunner({ [`${job.id}-1`]: { is: 'interrupted', reason: 'gone' } });
    await advanceWith(store, runner, { metrics, holder: 'a former leader' })(job.id);
    expect(countsOf(await renderMetrics(metrics))).to.deep.equal([]);
  });

  it('trawl_job_seconds splits the life of a job into queue, work and storage', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const metrics = makeMetrics();
    const runner = aRunner({ [`${job.id}-1`]: done(job.id) });
    let isAway = true;
    const see = async () => {
      if (isAway) throw new Error('the object store is away');
      return { bytes: someDelivered(1).bytes, checksum: someDelivered(1).sha256 };
    };
    const objects = { finish: async () => false, see, remove: async () => {} };
    const advance = advanceWith(store, runner, { metrics, objects });
    for (let n = 0; n < 2; n++) await advance(job.id);
    isAway = false;
    store.advance(40_000);
    await lead(store, holder);
    await advance(job.id);
    const text = await renderMetrics(metrics);
    for (const stage of ['queue', 'work', 'storage']) {
      expect(text).to.contain(`trawl_job_seconds_count{endpoint="video",stage="${stage}"} 1\n`);
    }
    expect(text).to.contain('trawl_job_seconds_bucket{le="30",endpoint="video",stage="storage"} 0\n');
    expect(text).to.contain('trawl_job_seconds_bucket{le="60",endpoint="video",stage="storage"} 1\n');
    expect(text).to.contain('trawl_job_seconds_bucket{le="30",endpoint="video",stage="work"} 1\n');
  });

  it('trawl_job_seconds does not take a job that its caller cancelled in the queue for one that ran late, or early', async () => {
    const caller = await anAccount(store, { credits: 2 });
    const waiting = await theJob(store, await admitted(store, caller));
    const metrics = makeMetrics();
    countCancelledJob(metrics, waiting, waiting.created_at + 300_000);
    expect(await renderMetrics(metrics))
      .to.contain('trawl_jobs_total{endpoint="video",outcome="failed",code="cancelled",blame="caller"} 1\n')
      .and.not.match(/^trawl_job_seconds_count/m);
    countCancelledJob(metrics, { ...waiting, started_at: waiting.created_at + 1_000 }, waiting.created_at + 300_000);
    expect(await renderMetrics(metrics)).to.contain('trawl_job_seconds_count{endpoint="video",stage="queue"} 1\n');
  });

  it('trawl_source_outcomes_total counts settled jobs by site, and the host of a caller never becomes a label', async () => {
    const { text, job } = await endOne(done);
    const { hostname } = new URL(String(job.args.query));
    expect(text)
      .to.contain('trawl_source_outcomes_total{site="other",outcome="completed"} 1\n')
      .and.not.contain(hostname);
  });

  it('an interrupted attempt keeps its reason in the record', async () => {
    const { job } = await endOne(() => ({ is: 'interrupted', reason: 'its node was shut down' }));
    const marks = await readAttempts(store, job.id);
    expect(marks.at(-1)).to.include({ attempt: 1, counts: 'interruption', reason: 'its node was shut down' });
  });

  it('the interruption that ends a job with worker_lost keeps its reason in the record', async () => {
    const { job } = await endOne(() => ({ is: 'interrupted', reason: 'its node was shut down' }), {
      maxInterruptions: 0,
    });
    const marks = await readAttempts(store, job.id);
    expect(marks.at(-1)).to.include({ attempt: 1, code: 'worker_lost', reason: 'its node was shut down' });
  });

  it('a retried attempt may be taken again and is counted as a second one', async () => {
    const { job, metrics, advance } = await endOne(() => ({ is: 'interrupted', reason: 'gone' }));
    await lead(store, holder);
    while ((await takeJob(store, holder, 1_000_000)) !== job.id);
    await advance(job.id);
    expect(await theJob(store, job.id)).to.include({ attempt: 2 });
    expect(countsOf(await renderMetrics(metrics))).to.deep.equal(['trawl_attempts_total{class="interrupted"} 1']);
  });
});
