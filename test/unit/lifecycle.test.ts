import { expect } from 'chai';
import fc from 'fast-check';
import { type FailureCode, failures } from '../../src/base/errors.ts';
import { isEnded, type Job } from '../../src/model/job.ts';
import { attemptMsOf, endOf, failAttempt, type JobLimits, next, type Seen, type Step } from '../../src/model/next.ts';
import type { Outcome } from '../../src/model/outcome.ts';
import { aJob, someDelivered, someMetadata } from '../support/jobs.ts';

const limits: JobLimits = {
  maxAttempts: 3,
  maxInterruptions: 10,
  maxQueueMs: 100_000,
  maxStoringMs: 80_000,
  maxAttemptMs: 50_000,
};
const words: readonly Step['do'][] = ['nothing', 'start', 'note', 'retry', 'confirm', 'settle', 'stop'];

const codes = fc.constantFrom(...(Object.keys(failures) as FailureCode[]));
const times = fc.integer({ min: 0, max: 300_000 });
const maybeTimes = fc.option(times);
const counts = fc.nat(12);

/** Ends of the worker of attempt 1; other attempts rename the key. */
const outcomes: fc.Arbitrary<Outcome> = fc.oneof(
  fc.boolean().map((own): Outcome => ({ is: 'done', metadata: someMetadata, delivered: someDelivered(own ? 1 : 7) })),
  fc.constant<Outcome>({ is: 'done', metadata: someMetadata, delivered: null }),
  codes.map((code): Outcome => ({ is: 'failed', code })),
  fc.constant<Outcome>({ is: 'interrupted', reason: 'evicted' }),
);

const seens: fc.Arbitrary<Seen> = fc.oneof(
  fc.constantFrom<Seen>({ is: 'absent' }, { is: 'running' }, { is: 'waiting', reason: 'no room' }),
  outcomes.map((outcome): Seen => ({ is: 'ended', outcome })),
);

const jobs: fc.Arbitrary<Job> = fc
  .record({
    endpoint: fc.constantFrom('video' as const, 'audio' as const, 'metadata' as const),
    status: fc.constantFrom<Job['status']>('QueuedJob', 'Running', 'CompletedJob', 'Error', 'NotFound', 'BadRequest'),
    created_at: times,
    attempt: counts,
    failures: counts,
    interruptions: counts,
    not_before: times,
    deadline: maybeTimes,
    storing_since: maybeTimes,
    delivered: fc.option(fc.constant(someDelivered(1))),
    metadata: fc.option(fc.constant(someMetadata)),
  })
  .map((given) => Object.freeze(aJob(given)));

describe('the lifecycle, for any job, worker and time', () => {
  it('exactly one step is named, the same each time', () => {
    fc.assert(
      fc.property(jobs, seens, times, (job, seen, now) => {
        const step = next(job, seen, now, limits);
        expect(words).to.include(step.do);
        expect(next(job, seen, now, limits)).to.deep.equal(step);
      }),
    );
  });

  it('an ended job is never started, tried or settled again', () => {
    fc.assert(
      fc.property(jobs, seens, times, (job, seen, now) => {
        fc.pre(isEnded(job.status));
        expect(next(job, seen, now, limits).do).to.equal(seen.is === 'absent' ? 'nothing' : 'stop');
      }),
    );
  });

  it('an attempt is started only when every earlier one is counted and its worker gone', () => {
    fc.assert(
      fc.property(jobs, seens, times, (job, seen, now) => {
        const step = next(job, seen, now, limits);
        if (step.do !== 'start') return;
        expect([seen.is, step.attempt]).to.deep.equal(['absent', job.attempt + 1]);
        expect(job.attempt).to.be.at.most(job.failures + job.interruptions);
      }),
    );
  });

  it('a finished file is lost to nothing but an object store that is away for 24 h', () => {
    const done: Seen = { is: 'ended', outcome: { is: 'done', metadata: someMetadata, delivered: someDelivered(1) } };
    fc.assert(
      fc.property(jobs, times, (given, now) => {
        const job: Job = { ...given, endpoint: 'video', status: 'Running', attempt: 1, failures: 0, interruptions: 0 };
        const step = next(job, done, now, limits);
        const stored = job.storing_since !== null && job.delivered !== null && job.metadata !== null;
        const tooLong = stored && now - Number(job.storing_since) >= limits.maxStoringMs;
        if (tooLong) expect(step).to.deep.include({ do: 'settle', end: endOf('storage_unavailable') });
        else expect(step.do).to.equal('confirm');
      }),
    );
  });
});

type Fate = Outcome | 'waits' | 'hangs' | 'vanishes';

interface World {
  readonly fates: readonly Fate[];
  /** The answers of the object store, of which the last one repeats. */
  readonly stored: readonly ('same' | 'away' | 'missing')[];
  /** Milliseconds between two passes. */
  readonly tick: number;
}

const worlds: fc.Arbitrary<World> = fc.record({
  fates: fc.array(fc.oneof(outcomes, fc.constantFrom<Fate>('waits', 'hangs', 'vanishes')), { maxLength: 16 }),
  stored: fc.array(fc.constantFrom('same' as const, 'away' as const, 'missing' as const), {
    minLength: 1,
    maxLength: 5,
  }),
  tick: fc.integer({ min: 1000, max: 20_000 }),
});

describe('the lifecycle, step after step', () => {
  it('job-statuses: every job ends once, within its attempts, and leaves no worker', () => {
    fc.assert(
      fc.property(worlds, fc.constantFrom('video' as const, 'metadata' as const), (world, endpoint) => {
        const { job, steps, seen } = live(world, endpoint);
        expect([isEnded(job.status), seen.is]).to.deep.equal([true, 'absent']);
        expect(steps.filter((step) => step === 'settle')).to.have.length(1);
        expect(steps.filter((step) => step === 'start')).to.have.length(job.attempt);
        expect(job.failures).to.be.below(limits.maxAttempts);
        expect(job.interruptions).to.be.at.most(limits.maxInterruptions);
      }),
      { numRuns: 300 },
    );
  });

  it('a job that is never interrupted too often nor fails too often delivers in the end', () => {
    const fates = fc.array(fc.constantFrom<Fate>('vanishes', { is: 'interrupted', reason: 'drained' }), {
      maxLength: 10,
    });
    fc.assert(
      fc.property(fates, (given) => {
        const done: Outcome = { is: 'done', metadata: someMetadata, delivered: someDelivered(1) };
        const { job } = live({ fates: [...given, done], stored: ['away', 'same'], tick: 5000 }, 'video');
        expect([job.status, job.interruptions, job.attempt]).to.deep.equal([
          'CompletedJob',
          given.length,
          given.length + 1,
        ]);
      }),
    );
  });
});

interface Life {
  readonly job: Job;
  readonly steps: readonly Step['do'][];
  readonly seen: Seen;
}

/** Lets a controller go over one job until nothing is left to do. */
function live(world: World, endpoint: 'video' | 'metadata'): Life {
  const steps: Step['do'][] = [];
  let job = aJob({ endpoint });
  let seen: Seen = { is: 'absent' };
  let now = 0;
  let asked = 0;
  for (let pass = 0; pass < 1000; pass++) {
    let step = next(job, seen, now, limits);
    if (step.do === 'confirm') {
      const answer = world.stored[Math.min(asked++, world.stored.length - 1)];
      if (answer === 'same') step = { do: 'settle', end: endOf(null), metadata: step.metadata };
      if (answer === 'missing') step = failAttempt(job, { code: 'worker_failed' }, now, limits);
    }
    steps.push(step.do);
    if (step.do === 'nothing' && step.until === undefined) return { job, steps, seen };
    job = write(job, step, now);
    if (step.do === 'start') seen = see(world.fates[step.attempt - 1] ?? 'hangs', step.attempt);
    if (step.do === 'stop') seen = { is: 'absent' };
    now += world.tick;
  }
  throw new Error(`Not ended: ${steps.slice(0, 40).join(' ')}`);
}

/** The state of a worker with this fate. */
function see(fate: Fate, attempt: number): Seen {
  if (fate === 'vanishes') return { is: 'absent' };
  if (fate === 'waits') return { is: 'waiting', reason: 'no room' };
  if (fate === 'hangs') return { is: 'running' };
  if (fate.is !== 'done' || !fate.delivered) return { is: 'ended', outcome: fate };
  const delivered = { ...fate.delivered, key: fate.delivered.key.replace('/1/', `/${attempt}/`) };
  return { is: 'ended', outcome: { ...fate, delivered } };
}

/** Returns the record after a step. */
function write(job: Job, step: Step, now: number): Job {
  switch (step.do) {
    case 'start':
      return { ...job, attempt: step.attempt, deadline: null };
    case 'note':
      return {
        ...job,
        status: step.running ? 'Running' : job.status,
        stage: step.stage,
        deadline: step.running ? (job.deadline ?? now + attemptMsOf(job, limits)) : job.deadline,
      };
    case 'retry': {
      const counted =
        step.counts === 'failure' ? { failures: job.failures + 1 } : { interruptions: job.interruptions + 1 };
      return { ...job, ...counted, not_before: step.notBefore, deadline: null, storing_since: null };
    }
    case 'confirm':
      return { ...job, storing_since: job.storing_since ?? now, delivered: step.delivered, metadata: step.metadata };
    case 'settle':
      return { ...job, status: step.end.status, ended_at: now };
    default:
      return job;
  }
}
