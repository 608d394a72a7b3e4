import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { type Delivered, isEnded, type Job } from '../model/job.ts';
import {
  deadlineOf,
  endOf,
  failAttempt,
  hasOpenAttempt,
  type JobEnd,
  type JobLimits,
  next,
  type Seen,
  type Step,
} from '../model/next.ts';
import { objectPrefix } from '../model/outcome.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { attemptNameOf, attemptNumberOf, type Runner } from '../runners/runner.ts';
import { noteProgress } from '../store/jobs/note-progress.ts';
import { noteStoring } from '../store/jobs/note-storing.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { retryJob } from '../store/jobs/retry-job.ts';
import { settleJob } from '../store/jobs/settle-job.ts';
import { startAttempt } from '../store/jobs/start-attempt.ts';
import type { RecordStore } from '../store/script.ts';

export interface AdvanceOptions {
  readonly store: RecordStore;
  readonly holder: string;
  readonly limits: JobLimits;
  readonly objects: Pick<ObjectStore, 'finish' | 'see' | 'remove'>;
  /** All there are. */
  readonly runners: readonly Runner[];
  /** Where the attempts of a job run. */
  readonly runnerOf: (job: Pick<Job, 'endpoint'>) => Runner;
  /** Whether an attempt may begin now. */
  readonly mayStart: () => boolean;
  readonly metrics: Metrics;
  readonly log: Log;
}

const storingAgainMilliseconds = 2_000;
const atOnceMilliseconds = 1;

/** Reads a job afresh, asks its runner, and carries out the one next step; answers when to look again, `null` for not by itself. */
export function makeAdvance(options: AdvanceOptions): (id: string) => Promise<number | null> {
  const { store, runnerOf } = options;
  const starts = makeStarts(store);
  return async (id) => {
    const job = await readJob(store, id);
    await stopOlder(options, id, job);
    if (job === null) return null;
    const runner = runnerOf(job);
    const seen = await look(runner, job);
    const told = await hear(store, job, seen);
    if (
      seen.is === 'absent' &&
      told.verdict === null &&
      hasOpenAttempt(job) &&
      starts.isFailed(attemptNameOf(id, job.attempt))
    ) {
      await starts.begin(runner, job, job.attempt, job.deadline ?? 0);
      return atOnceMilliseconds;
    }
    return goOn({ ...options, starts }, runner, told, seen);
  };
}

/** Asks for the worker of the last attempt. Of one that is over only leavings matter, and those are known without asking anew. */
async function look(runner: Runner, job: Job): Promise<Seen> {
  const name = attemptNameOf(job.id, job.attempt);
  if (job.attempt === 0) return { is: 'absent' };
  const isOver = isEnded(job.status) || !hasOpenAttempt(job);
  if (isOver && !(await runner.list(job.id)).includes(name)) return { is: 'absent' };
  return runner.see(name);
}

/** The job with what its worker has told since the job was read: it tells before it ends, and more than its runner knows of it. */
async function hear(store: RecordStore, job: Job, seen: Seen): Promise<Job> {
  if (!hasLeft(seen) || job.verdict !== null || isEnded(job.status) || !hasOpenAttempt(job)) return job;
  const now = await readJob(store, job.id);
  return now?.attempt === job.attempt ? { ...job, verdict: now.verdict } : job;
}

function hasLeft({ is }: Seen): boolean {
  return is === 'ended' || is === 'absent';
}

/** Ends workers that nobody waits for: of attempts before the last one, and of a job that the record does not know any more. */
async function stopOlder({ runners }: AdvanceOptions, id: string, job: Job | null): Promise<void> {
  const last = job?.attempt ?? Number.POSITIVE_INFINITY;
  for (const runner of runners) {
    const names = await runner.list(id);
    await Promise.all(names.filter((name) => attemptNumberOf(name) < last).map((name) => runner.stop(name)));
  }
}

interface Carrying extends AdvanceOptions {
  readonly starts: Starts;
}

/** Carries out the next step of a job of which this is known. */
function goOn(options: Carrying, runner: Runner, job: Job, seen: Seen): Promise<number | null> {
  return carryOut(options, runner, job, seen, next(job, seen, options.store.clock.now(), options.limits));
}

async function carryOut(options: Carrying, runner: Runner, job: Job, seen: Seen, step: Step): Promise<number | null> {
  const { store, holder, limits, log, starts } = options;
  const now = store.clock.now();
  switch (step.do) {
    case 'nothing':
      return step.until === undefined ? null : Math.max(atOnceMilliseconds, step.until - now);
    case 'start': {
      if (!options.mayStart()) return null;
      const deadline = deadlineOf(job, limits, now);
      const started = await startAttempt(store, holder, job, step.attempt, deadline);
      if (started.refused) return null;
      await starts.begin(runner, job, step.attempt, deadline);
      const begun = { ...job, attempt: step.attempt, deadline, storing_since: null, verdict: null };
      const first = await look(runner, begun);
      // What its worker has told is read with the job.
      return hasLeft(first) ? atOnceMilliseconds : goOn(options, runner, begun, first);
    }
    case 'note': {
      const { running, stage } = step;
      const told = { progress: 0, stage: stage ?? '', speed_bytes: null, eta_seconds: null };
      const noted = await noteProgress(store, job.id, job.attempt, { ...told, running });
      if (noted.refused) return atOnceMilliseconds;
      return goOn(options, runner, { ...job, status: running ? 'Running' : job.status, stage }, seen);
    }
    case 'retry': {
      options.metrics.attempts_total.inc({ class: step.counts === 'failure' ? 'failed' : 'interrupted' });
      const moved = await retryJob(store, holder, job, step);
      log.info('an attempt is over', {
        job: job.id,
        attempt: job.attempt,
        counts: step.counts,
        code: step.code,
        moved: moved.done === true,
      });
      // Whoever leads now has not read yet how it ended.
      if (moved.done) await clear(options, runner, job, job);
      return null;
    }
    case 'confirm':
      return confirm(options, runner, job, seen, step.delivered, step.metadata);
    case 'settle':
      return settle(options, runner, job, step.end, step.metadata, null);
    case 'stop':
      await clear(options, runner, job, job);
      return null;
  }
}

/** Asks the object store for what the worker says it has delivered, then completes the job; waits while it cannot tell (D75). */
async function confirm(
  options: Carrying,
  runner: Runner,
  job: Job,
  seen: Seen,
  delivered: Delivered,
  metadata: NonNullable<Job['metadata']>,
): Promise<number | null> {
  const { store, holder, objects, limits, log } = options;
  let found: Awaited<ReturnType<ObjectStore['see']>>;
  try {
    await objects.finish(delivered.key);
    found = await objects.see(delivered.key);
  } catch (error) {
    log.warn('the object store cannot be asked: the job waits', { job: job.id, error });
    await noteStoring(store, holder, job, { metadata, delivered });
    return storingAgainMilliseconds;
  }
  if (found?.bytes === delivered.bytes && found.checksum === delivered.sha256) {
    return settle(options, runner, job, endOf(null), metadata, delivered);
  }
  log.error('the delivered object is not what the worker said', { job: job.id, found });
  return carryOut(options, runner, job, seen, failAttempt(job, 'worker_failed', null, store.clock.now(), limits));
}

async function settle(
  options: Carrying,
  runner: Runner,
  job: Job,
  end: JobEnd,
  metadata: Job['metadata'],
  delivered: Delivered | null,
): Promise<number | null> {
  const { store, holder, metrics, log } = options;
  const settled = await settleJob(store, holder, job, { ...end, metadata, delivered });
  if (settled.done) {
    const outcome = end.success ? 'completed' : 'failed';
    metrics.jobs_total.inc({ endpoint: job.endpoint, outcome, code: end.code ?? '', blame: end.blame ?? '' });
    if (end.success) metrics.charges_total.inc({ endpoint: job.endpoint, balance: settled.balance });
    if (settled.balance === 'overdraft') metrics.overdrafts_total.inc();
    if (end.code === 'unclassified') metrics.unclassified_failures_total.inc();
    log.info('a job ended', { job: job.id, status: end.status, code: end.code, charged: settled.balance });
  }
  if (settled.refused === 'not_leading' || settled.refused === 'stale') return null;
  await clear(options, runner, job, settled.done ? { status: end.status, delivered } : await readJob(store, job.id));
  return null;
}

/** Rids the runner of an attempt that is over, and the object store of what it left there, unless the record says that it is kept. */
async function clear(
  { objects, starts }: Carrying,
  runner: Runner,
  { id, attempt, endpoint }: Job,
  record: Pick<Job, 'status' | 'delivered'> | null,
): Promise<void> {
  if (attempt === 0) return;
  const name = attemptNameOf(id, attempt);
  starts.forget(name);
  await runner.stop(name);
  if (endpoint === 'metadata') return;
  const own = objectPrefix(id, attempt);
  const isKept = record !== null && isEnded(record.status) && record.delivered?.key.startsWith(own);
  if (!isKept) await objects.remove(own);
}

type Starts = ReturnType<typeof makeStarts>;

/** Starts workers, and remembers those whose start failed: their attempt has not begun, so it is not interrupted either. */
function makeStarts(store: RecordStore) {
  const failed = new Set<string>();
  return {
    isFailed: (name: string) => failed.has(name),
    forget: (name: string) => failed.delete(name),
    async begin(runner: Runner, { id, endpoint }: Job, attempt: number, deadline: number): Promise<void> {
      const name = attemptNameOf(id, attempt);
      try {
        await runner.start({ name, jobId: id, attempt, endpoint, deadline });
        failed.delete(name);
      } catch (error) {
        if (store.clock.now() < deadline) failed.add(name);
        else failed.delete(name);
        const waiting = {
          progress: 0,
          running: false,
          stage: 'It cannot be started now',
          speed_bytes: null,
          eta_seconds: null,
        };
        await noteProgress(store, id, attempt, waiting);
        throw error;
      }
    },
  };
}
