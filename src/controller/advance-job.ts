import type { Traces } from '../base/traces.ts';
import { isEnded, type Job } from '../model/job.ts';
import {
  attemptMsOf,
  endOf,
  failAttempt,
  failureOf,
  type JobLimits,
  next,
  type Seen,
  type Step,
  waitEndOf,
  withoutAges,
} from '../model/next.ts';
import { type Delivered, objectPrefix } from '../model/outcome.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { attemptNameOf, type Runner } from '../runners/runner.ts';
import { noteProgress } from '../store/jobs/note-progress.ts';
import { noteStoring } from '../store/jobs/note-storing.ts';
import { isOpenWork } from '../store/jobs/open-work.ts';
import { readJob } from '../store/jobs/read-job.ts';
import { retryJob } from '../store/jobs/retry-job.ts';
import { settleJob } from '../store/jobs/settle-job.ts';
import type { UpkeepParts } from '../store/upkeep-parts.ts';
import {
  DamagedRecord,
  isGone,
  makeAttemptStarter,
  readVerdict,
  seeWorker,
  startRefused,
  stopOtherAttempts,
} from './attempt-workers.ts';
import { seeDelivered } from './delivered-file.ts';
import { logOfJob, makeJobEnds } from './job-ends.ts';
import { countCancelledAttempt, countRetriedAttempt } from './job-metrics.ts';
import type { StorageLane } from './storage-lane.ts';
import type { StorageProbe } from './storage-probe.ts';
import { UnsettledJobs } from './unsettled-jobs.ts';

export interface AdvanceOptions extends UpkeepParts {
  /** The term of this controller as leader: scripts refuse steps that were decided in an earlier one. */
  readonly term: () => string;
  readonly limits: JobLimits;
  readonly objects: Pick<ObjectStore, 'finish' | 'see' | 'keep' | 'remove'>;
  readonly lane: StorageLane;
  readonly probe: Pick<StorageProbe, 'takesFiles' | 'doubt'>;
  readonly runners: readonly Runner[];
  readonly runnerOf: (job: Pick<Job, 'endpoint'>) => Runner;
  /** False while the controller starts no attempts. */
  readonly mayStart: () => boolean;
  readonly traces: Traces | null;
}

interface Situation {
  /** The term in which the job was read. */
  readonly term: string;
  readonly job: Job;
  readonly runner: Runner;
  readonly seen: Seen;
  /** False while as many workers are made as may be at once. */
  readonly claimStart: () => boolean;
  /** When the step was decided that is carried out. */
  readonly decidedAt: number;
}

type StepOf<D extends Step['do']> = Extract<Step, { readonly do: D }>;
/** Milliseconds until the job must be advanced again; `null`: at the next hint or full pass. */
type NextDelay = Promise<number | null>;

const atOnceMs = 1;
/** A job that goes on may have been taken again while its last worker was stopped; a watch may be late to show that this one is gone. */
const afterStopMs = 1_000;
/** State of an attempt whose worker could not be made. */
const neverStarted: Seen = { is: 'waiting', reason: startRefused };

/** Carries out the next step of a job: reads the job, asks its runner, decides with `model/next`, acts. */
export class JobAdvancer {
  readonly unsettled = new UnsettledJobs();
  readonly #options: AdvanceOptions;
  readonly #starter: ReturnType<typeof makeAttemptStarter>;
  readonly #ends: ReturnType<typeof makeJobEnds>;

  constructor(options: AdvanceOptions) {
    this.#options = options;
    this.#starter = makeAttemptStarter(options);
    this.#ends = makeJobEnds(options);
  }

  async advance(jobId: string, claimStart: () => boolean): NextDelay {
    const term = this.#options.term();
    const read = await readJob(this.#options.store, jobId);
    await stopOtherAttempts(this.#options, jobId, read);
    if (read === null) {
      this.unsettled.delete(jobId);
      this.#ends.forget(jobId);
      if (await isOpenWork(this.#options.store, jobId)) throw new DamagedRecord(['record']);
      return null;
    }
    DamagedRecord.refuse(read);
    await this.#ends.tellUnanswered(read);
    const runner = this.#options.runnerOf(read);
    const seen = await seeWorker(runner, read);
    const job = await readVerdict(this.#options.store, read, seen);
    // A cancelled attempt whose worker was never made is counted here, since no worker is left to stop.
    const wasNeverMade =
      isEnded(job.status) && seen.is === 'absent' && this.#starter.forget(attemptNameOf(job.id, job.attempt));
    if (wasNeverMade) countCancelledAttempt(this.#options.metrics, job);
    const now = this.#options.store.clock.now();
    this.unsettled.update(job, seen, now);
    // The inspector, which is asked for metadata, needs no worker.
    const situation = { term, job, runner, claimStart: () => job.endpoint === 'metadata' || claimStart() };
    if (!this.#starter.lacksWorker(job, seen))
      return this.#decide({ ...situation, seen: this.unsettled.endOf(job, seen, now) });
    if (now >= waitEndOf(job, this.#limits())) return this.#decide({ ...situation, seen: neverStarted });
    if (!situation.claimStart()) return null;
    await this.#starter.start(runner, job, job.attempt, attemptMsOf(job, this.#options.limits));
    return atOnceMs;
  }

  /** Decides again by TIME of the script that found an end too early: the clock went back since it was last read. */
  #decide(situation: Omit<Situation, 'decidedAt'>, decidedAt = this.#options.store.clock.now()): NextDelay {
    const step = next(situation.job, situation.seen, decidedAt, this.#limits());
    if (failureOf(step) === 'storage_unavailable') this.#options.probe.doubt();
    return this.#carryOut({ ...situation, decidedAt }, step);
  }

  #limits(): JobLimits {
    const { store, limits } = this.#options;
    return store.connection.clock.isSteady() ? limits : withoutAges(limits);
  }

  async #carryOut(situation: Situation, step: Step): NextDelay {
    switch (step.do) {
      case 'nothing':
        return step.until === undefined ? null : Math.max(atOnceMs, step.until - situation.decidedAt);
      case 'start':
        return this.#start(situation, step.attempt);
      case 'note':
        return this.#note(situation, step);
      case 'retry':
        return this.#retry(situation, step);
      case 'confirm':
        return this.#confirm(situation, step);
      case 'settle':
        return this.#settle(situation, step, null);
      case 'stop':
        return this.#stop(situation);
    }
  }

  async #start(situation: Situation, attempt: number): NextDelay {
    const { term, job, runner, claimStart } = situation;
    const { limits, mayStart } = this.#options;
    if (!mayStart() || !claimStart()) return null;
    const recorded = await this.#starter.record(term, job, attempt);
    if (recorded.refused) return null;
    await this.#starter.start(runner, job, attempt, attemptMsOf(job, limits));
    const started = { ...job, attempt, deadline: null, storing_since: null, verdict: null };
    const seen = await seeWorker(runner, started);
    // A worker that has ended may have sent a verdict: `advance` reads it with the job.
    return isGone(seen) ? atOnceMs : this.#decide({ ...situation, job: started, seen });
  }

  async #note(situation: Situation, { running, stage }: StepOf<'note'>): NextDelay {
    const { job } = situation;
    const { store, limits } = this.#options;
    const lastsMs = attemptMsOf(job, limits);
    const progress = { progress: 0, stage: stage ?? '', speed_bytes: null, eta_seconds: null, running, lastsMs };
    const noted = await noteProgress(store, job, job.attempt, progress);
    if (noted.refused) return atOnceMs;
    const now = store.clock.now();
    const { started_at, deadline } = job;
    const begun = { status: 'Running', started_at: started_at ?? now, deadline: deadline ?? now + lastsMs } as const;
    return this.#decide({ ...situation, job: { ...job, ...(running ? begun : {}), stage } });
  }

  async #retry(situation: Situation, step: StepOf<'retry'>): NextDelay {
    const { store, metrics } = this.#options;
    const { term, job, runner } = situation;
    const moved = await retryJob(store, term, job, step);
    if (moved.refused === 'early') return this.#decide(situation, moved.now);
    const { counts, code, text: reason } = step;
    const fields = { counts, code, reason, moved: moved.done === true };
    logOfJob(this.#options.log, job).info('the attempt ended', fields);
    // Another controller leads: it still has to read from the worker how the attempt ended.
    if (!moved.done) return null;
    countRetriedAttempt(metrics, job, counts);
    await this.#clear(runner, job, job);
    return null;
  }

  /** Has the lane confirm the file; while the object store is away, the job is storing (D75). */
  async #confirm(situation: Situation, step: StepOf<'confirm'>): NextDelay {
    const { job } = situation;
    const isAsked = this.#options.lane.add(job.id, () => this.#confirmNow(situation, step));
    if (!isAsked && job.storing_since === null) await noteStoring(this.#options.store, situation.term, job, step);
    return null;
  }

  /** Completes the job if the object store has the file. */
  async #confirmNow(situation: Situation, step: StepOf<'confirm'>): NextDelay {
    const { store, objects } = this.#options;
    const { delivered, metadata } = step;
    const { term, job } = situation;
    const storingMs = job.storing_since === null ? null : store.clock.now() - job.storing_since;
    const found = await seeDelivered(objects, delivered.key, storingMs).catch(async (error) => {
      await noteStoring(store, term, job, step);
      throw error;
    });
    if (found?.bytes === delivered.bytes && found.checksum === delivered.sha256) {
      return this.#settle(situation, { end: endOf(null), metadata }, delivered);
    }
    logOfJob(this.#options.log, job).error('the stored object differs from the delivery that the worker reported', {
      found,
    });
    return this.#carryOut(situation, failAttempt(job, { code: 'worker_failed' }, store.clock.now(), this.#limits()));
  }

  async #settle(
    situation: Situation,
    { end, metadata, reason, dueAt }: Omit<StepOf<'settle'>, 'do'>,
    delivered: Delivered | null,
  ): NextDelay {
    const { store } = this.#options;
    const { term, job, runner, decidedAt } = situation;
    const asked = { term, job, end, decidedAt };
    const settled = await settleJob(store, term, job, { ...end, metadata, delivered, reason, dueAt }).catch((error) => {
      this.#ends.addUnanswered(asked);
      throw error;
    });
    if (settled.refused === 'early') return this.#decide(situation, settled.now);
    if (settled.refused === 'not_leading' || settled.refused === 'stale') return null;
    if (settled.done) {
      this.#ends.tell(asked, settled.balance, store.clock.now());
      await this.#clear(runner, job, { status: end.status, delivered });
    } else {
      await this.#clear(runner, job, await readJob(store, job.id));
    }
    return null;
  }

  async #stop({ job, runner }: Situation): NextDelay {
    await this.#clear(runner, job, job);
    countCancelledAttempt(this.#options.metrics, job);
    return isEnded(job.status) ? null : afterStopMs;
  }

  /** Removes the worker of an attempt that is over, and its objects unless the record says that the job delivered them, or may have said so. */
  async #clear(
    runner: Runner,
    { id, attempt, endpoint }: Job,
    record: Pick<Job, 'status' | 'delivered' | 'unreadable'> | null,
  ): Promise<void> {
    this.unsettled.delete(id);
    this.#options.lane.forget(id);
    if (attempt === 0) return;
    const name = attemptNameOf(id, attempt);
    this.#starter.forget(name);
    await runner.stop(name);
    if (endpoint === 'metadata') return;
    const prefix = objectPrefix(id, attempt);
    const mayBeDelivered = record?.delivered?.key.startsWith(prefix) || record?.unreadable !== undefined;
    const isKept = record !== null && isEnded(record.status) && mayBeDelivered;
    // The sweeper removes what is still there after the end of the job.
    if (!isKept) this.#options.lane.addOptional(prefix, () => this.#options.objects.remove(prefix));
  }
}
