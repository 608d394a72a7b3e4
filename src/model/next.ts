import { type Blame, type FailedStatus, type FailureCode, failures } from '../base/errors.ts';
import { recordingStage } from './attempt-stages.ts';
import { isEnded, type Job } from './job.ts';
import { type Metadata, readMetadata } from './metadata.ts';
import { type Delivered, type Outcome, objectPrefix } from './outcome.ts';

/** State of the worker of a job's last attempt as its runner sees it; the worker's own verdict is in the job. */
export type Seen =
  | { readonly is: 'absent' }
  /** Not running yet; `reason` only when the wait is out of the ordinary. */
  | { readonly is: 'waiting'; readonly reason: string | null }
  | { readonly is: 'running' }
  /** `neverRan`: the cluster could not start it. */
  | { readonly is: 'ended'; readonly outcome: Outcome; readonly neverRan?: true };

export interface JobLimits {
  /** Counts retryable failures. */
  readonly maxAttempts: number;
  /** Interruptions that a job survives (D74). */
  readonly maxInterruptions: number;
  /** Longest wait for a worker that runs (D72). */
  readonly maxQueueMs: number;
  /** Longest wait for the object store (D75). */
  readonly maxStoringMs: number;
  /** Longest run of an attempt; a recording may take its own length more (D65). */
  readonly maxAttemptMs: number;
  /** True while the clock has jumped: no attempt ends at its deadline. */
  readonly ignoresDeadlines?: boolean;
}

/** End of a job, for polls (`status`, `text`), the request log (`log`) and statistics. */
export interface JobEnd {
  readonly status: 'CompletedJob' | FailedStatus;
  readonly code: FailureCode | null;
  readonly text: string | null;
  readonly log: 201 | 400 | 404 | 500;
  readonly success: boolean;
  readonly blame: Blame | null;
}

type JobMetadata = NonNullable<Job['metadata']>;

/** Cause of an end: `dueAt` is its earliest time by the clock of Redis, where a step ends something for its age alone. */
interface Cause {
  readonly reason?: string;
  readonly dueAt?: number;
}

export type Step =
  | { readonly do: 'nothing'; readonly until?: number }
  | { readonly do: 'start'; readonly attempt: number }
  /** `running`: the job becomes Running. */
  | { readonly do: 'note'; readonly running: boolean; readonly stage: string | null }
  /** The attempt is over and counted; another one follows. */
  | {
      readonly do: 'retry';
      readonly counts: 'failure' | 'interruption';
      readonly code: FailureCode;
      readonly text: string | null;
      readonly notBefore: number;
      readonly dueAt?: number;
    }
  /** Complete the job if the object store has the file; while the object store is away, the job is storing (D75). */
  | { readonly do: 'confirm'; readonly delivered: Delivered; readonly metadata: JobMetadata }
  /** `metadata` is null when the job failed. */
  | ({ readonly do: 'settle'; readonly end: JobEnd; readonly metadata: JobMetadata | null } & Cause)
  | { readonly do: 'stop' };

/** A source may deliver a whole file the second time, but hardly the third: one more try, within `maxAttempts` (D97). */
const triedTwice: readonly FailureCode[] = ['file_damaged', 'file_too_large'];

/** Failure of an attempt at its deadline: one that waits again, such as for the inspector, has waited for too long. */
const deadlineCodes = { waiting: 'queue_timeout', running: 'timeout' } as const;

const maxRetryDelayMs = 600_000;
/** A job that would wait longer before its next attempt waits no more: the clock went back since. */
export const maxWaitMs = 2 * maxRetryDelayMs;
const preemptedText = 'another account waited for a worker';
/** A recording is interrupted only when it has just begun (`chooseSurplusRecording`). */
const surplusText = 'its account would record on every worker';

export function next(job: Job, seen: Seen, now: number, limits: JobLimits): Step {
  if (isEnded(job.status)) return seen.is === 'absent' ? { do: 'nothing' } : { do: 'stop' };
  if (!hasOpenAttempt(job)) return seen.is === 'absent' ? startLater(job, now, limits) : { do: 'stop' };
  // A storing job has the verdict in its record: its worker may be gone (D75).
  if (job.storing_since !== null && job.delivered && job.metadata) {
    const dueAt = job.storing_since + limits.maxStoringMs;
    return now >= dueAt
      ? settleFailed('storage_unavailable', null, { dueAt })
      : { do: 'confirm', delivered: job.delivered, metadata: job.metadata };
  }
  const begins = seen.is === 'running' && job.deadline === null;
  if (begins || (job.status === 'QueuedJob' && hasRun(seen))) return { do: 'note', running: true, stage: null };
  switch (seen.is) {
    case 'absent':
      // A verdict means that the attempt has run: it is not repeated because its runner knows it no more.
      return job.verdict ? judgeOutcome(job, job.verdict, now, limits) : interruptAttempt(job, null, now, limits);
    case 'ended':
      return judgeOutcome(job, verdictOf(job) ?? seen.outcome, now, limits);
    case 'waiting':
    case 'running':
      return watchWorker(job, seen, now, limits);
  }
}

/**
 * Judges an attempt whose worker waits or runs. It gets its deadline when its worker begins to run: until then the job waits, as
 * in the queue.
 */
function watchWorker(job: Job, seen: Seen & { is: 'waiting' | 'running' }, now: number, limits: JobLimits): Step {
  const deadline = job.deadline ?? waitEndOf(job, limits);
  const isOver = now >= deadline;
  const verdict = verdictOf(job);
  if (isOver && verdict) return judgeOutcome(job, verdict, now, limits);
  if (isOver && !limits.ignoresDeadlines) {
    if (job.deadline === null) return settleFailed('queue_timeout', null, { dueAt: deadline });
    return failAttempt(job, { code: deadlineCodes[seen.is], dueAt: deadline }, now, limits);
  }
  if (job.preempted === job.attempt && job.verdict === null) {
    return repeatInterrupted(job.stage === recordingStage ? surplusText : preemptedText, now);
  }
  if (seen.is === 'waiting' && seen.reason !== job.stage) return { do: 'note', running: false, stage: seen.reason };
  return isOver ? { do: 'nothing' } : { do: 'nothing', until: deadline };
}

/** Failure of one attempt, in the words of the table unless `text` is given. */
interface AttemptFailure extends Pick<Cause, 'dueAt'> {
  readonly code: FailureCode;
  readonly text?: string | null;
}

export function failAttempt(
  job: Job,
  { code, text = null, ...cause }: AttemptFailure,
  now: number,
  limits: JobLimits,
): Step {
  const failed = job.failures + 1;
  if (failed >= maxAttemptsFor(code, limits)) return settleFailed(code, text, cause);
  return { do: 'retry', counts: 'failure', code, text, notBefore: now + retryDelayMs(failed), ...cause };
}

/**
 * Returns how long the worker of an attempt may run. `max_duration` or `end` is added to every recording, because a source is not known to be
 * live before the attempt.
 */
export function attemptMsOf(job: Pick<Job, 'args'>, limits: Pick<JobLimits, 'maxAttemptMs'>): number {
  const { max_duration, end } = job.args;
  const recordedSeconds = [max_duration, end].find((seconds) => typeof seconds === 'number') ?? 0;
  return limits.maxAttemptMs + Math.ceil(recordedSeconds * 1000);
}

/** Returns when a job that waits for a worker has waited for too long (D72): since its creation, or since its last attempt ended. */
export function waitEndOf(job: Job, limits: Pick<JobLimits, 'maxQueueMs'>): number {
  return Math.max(job.created_at, job.not_before) + limits.maxQueueMs;
}

/** Limits by which no job ends for its age, for as long as the clock cannot be trusted. */
export function withoutAges(limits: JobLimits): JobLimits {
  const maxQueueMs = Number.POSITIVE_INFINITY;
  return { ...limits, maxQueueMs, maxStoringMs: Number.POSITIVE_INFINITY, ignoresDeadlines: true };
}

/** 5 s, 15 s, 45 s …, at most 10 minutes. */
function retryDelayMs(failed: number): number {
  return Math.min(5_000 * 3 ** (failed - 1), maxRetryDelayMs);
}

/** Every ended attempt is counted as a failure or an interruption, so what is not counted is open. */
export function hasOpenAttempt(job: Job): boolean {
  return job.attempt > job.failures + job.interruptions;
}

/** Returns the end with this failure, in the words given or those of the table; a null code completes the job. */
export function endOf(code: FailureCode | null, text: string | null = null): JobEnd {
  if (code === null) return { status: 'CompletedJob', code, text: null, log: 201, success: true, blame: null };
  const { status, log, blame, sentence } = failures[code];
  return { status, code, text: text ?? sentence, log, success: false, blame };
}

/** A verdict of `interrupted` only means SIGTERM; the runner knows the cause, so its outcome wins. */
function verdictOf({ verdict }: Job): Outcome | null {
  return verdict?.is === 'interrupted' ? null : verdict;
}

function hasRun(seen: Seen): boolean {
  return seen.is === 'running' || (seen.is === 'ended' && seen.outcome.is !== 'interrupted' && !seen.neverRan);
}

function startLater(job: Job, now: number, limits: JobLimits): Step {
  const dueAt = waitEndOf(job, limits);
  if (now >= dueAt) return settleFailed('queue_timeout', null, { dueAt });
  const waits = job.not_before > now && job.not_before - now <= maxWaitMs;
  if (waits) return { do: 'nothing', until: job.not_before };
  return { do: 'start', attempt: job.attempt + 1 };
}

/** Returns the failure of an attempt that a step records; `null` for none. */
export function failureOf(step: Step): FailureCode | null {
  if (step.do === 'retry') return step.code;
  return step.do === 'settle' ? step.end.code : null;
}

function judgeOutcome(job: Job, outcome: Outcome, now: number, limits: JobLimits): Step {
  switch (outcome.is) {
    case 'interrupted':
      return interruptAttempt(job, outcome.reason, now, limits);
    case 'failed':
      return failAttempt(job, { code: outcome.code, text: outcome.text ?? null }, now, limits);
    case 'done': {
      const { delivered } = outcome;
      const metadata = withOwnUrl(job, outcome.metadata);
      if (delivered === null && job.endpoint === 'metadata') return { do: 'settle', end: endOf(null), metadata };
      if (delivered !== null && isOwn(job, delivered)) return { do: 'confirm', delivered, metadata };
      return failAttempt(job, { code: 'worker_failed' }, now, limits);
    }
  }
}

/** Takes the URL from the record: the termination message of a pod holds none. */
function withOwnUrl({ args }: Job, metadata: Metadata): Metadata {
  return readMetadata({ ...metadata, original_url: args.query }) ?? metadata;
}

/** A worker that names the file of another job or attempt must not get it delivered. */
function isOwn(job: Job, delivered: Delivered): boolean {
  return job.endpoint !== 'metadata' && delivered.key.startsWith(objectPrefix(job.id, job.attempt));
}

function interruptAttempt(job: Job, reason: string | null, now: number, limits: JobLimits): Step {
  if (job.interruptions >= limits.maxInterruptions) {
    return settleFailed('worker_lost', null, reason === null ? {} : { reason });
  }
  return repeatInterrupted(reason, now);
}

function repeatInterrupted(reason: string | null, now: number): Step {
  return { do: 'retry', counts: 'interruption', code: 'worker_lost', text: reason, notBefore: now };
}

/** A failure that the caller caused is final: seconds later it would be the same. */
function maxAttemptsFor(code: FailureCode, limits: JobLimits): number {
  if (triedTwice.includes(code)) return Math.min(2, limits.maxAttempts);
  return failures[code].retryable && failures[code].blame !== 'caller' ? limits.maxAttempts : 1;
}

function settleFailed(code: FailureCode, text: string | null, cause: Cause = {}): Step {
  return { do: 'settle', end: endOf(code, text), metadata: null, ...cause };
}
