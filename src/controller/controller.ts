import { randomUUID } from 'node:crypto';
import { isRefusal } from '../base/errors.ts';
import { fewLines } from '../base/few-lines.ts';
import type { Log } from '../base/log.ts';
import { coalesceRuns, type SingleFlight } from '../base/single-flight.ts';
import { within } from '../base/within.ts';
import type { WorkerShares } from '../model/preemption.ts';
import { jobIdOf } from '../runners/runner.ts';
import { controllerLeaseMs, type LeadCandidate, leaveLead, takeLead } from '../store/jobs/leadership.ts';
import { offerTurns } from '../store/jobs/offer-turns.ts';
import { listOverdue, readActiveJobs } from '../store/jobs/open-work.ts';
import { requeueDelayed } from '../store/jobs/requeue-delayed.ts';
import { makeTake } from '../store/jobs/take-jobs.ts';
import { channels } from '../store/keys.ts';
import { maxClockDifferenceMs } from '../store/redis/redis-time.ts';
import { type AdvanceOptions, JobAdvancer } from './advance-job.ts';
import { noteFailedSteps } from './failed-steps.ts';
import { makePreempter } from './preempter.ts';
import { StorageLane } from './storage-lane.ts';
import { StorageProbe } from './storage-probe.ts';
import { makeWorkQueue, type WorkQueue } from './work-queue.ts';

export interface ControllerOptions extends Omit<AdvanceOptions, 'term' | 'mayStart' | 'lane' | 'probe'> {
  readonly shares: WorkerShares;
  readonly times?: Partial<ControllerTimes>;
}

export interface ControllerTimes {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly fullPassMs: number;
}

const defaultTimes: ControllerTimes = { leaseMs: controllerLeaseMs, renewMs: 2_000, fullPassMs: 30_000 };
/** Value of the label of `upkeep_errors_total`. */
type ControllerTask = 'lead' | 'pass' | 'take' | 'requeue' | 'preempt';

const heartbeatMs = 500;
/** Shortest time between two full passes in one term. */
const minPassMs = 5_000;
const maxJobsAtOnce = 32;
/** Half of these: an admission webhook of the cluster may hold up each new Job for 30 s, and other jobs need their steps. */
const maxStartsAtOnce = 16;
/** A step that hangs must leave time to close the runners. */
const maxStepMs = 3000;
/** The next leader confirms what the object store has not confirmed by then. */
const maxLaneMs = 1000;

export async function startController(options: ControllerOptions): Promise<Controller> {
  const controller = new Controller(options);
  await controller.start();
  return controller;
}

/** Brings every job to its end while it leads. Hints make it fast; a full pass every 30 s makes it certain. */
export class Controller {
  /** Probe of the object store, for everything that needs it. */
  readonly storage: StorageProbe;
  readonly #options: ControllerOptions;
  readonly #times: ControllerTimes;
  readonly #holder = randomUUID();
  readonly #warn: Log['warn'];
  readonly #lane: StorageLane;
  readonly #advancer: JobAdvancer;
  readonly #queue: WorkQueue;
  readonly #preempter: ReturnType<typeof makePreempter>;
  readonly #requeueFlight = this.#flight('requeue', 'the requeue of delayed jobs', () => this.#requeueDelayed());
  readonly #takeFlight = this.#flight('take', 'the take of queued jobs', () => this.#takeJobs());
  readonly #preemptFlight = this.#flight('preempt', 'making room for an account', () => this.#preempter.makeRoom());
  readonly #recordingsFlight = this.#flight('preempt', 'the check of recordings', () =>
    this.#preempter.checkRecordings(),
  );
  readonly #passFlight = this.#flight('pass', 'the full pass', () => this.#fullPass());
  #take: () => AsyncIterable<string>;
  #timers: NodeJS.Timeout[] = [];
  #stopListening: () => Promise<void> = async () => {};
  #isLeading = false;
  #term = '';
  #isPaused = false;
  #isClosing = false;
  #passedAt = Number.NEGATIVE_INFINITY;
  /** When the next full pass is due. */
  #passAt = Number.NEGATIVE_INFINITY;

  constructor(options: ControllerOptions) {
    const { objects, metrics, log } = options;
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    this.#warn = fewLines(log.warn);
    this.storage = new StorageProbe({ objects, metrics, log });
    const again = (jobId: string) => this.#queue.add(jobId);
    this.#lane = new StorageLane({ probe: this.storage, log, again });
    const [term, mayStart] = [() => this.#term, () => !this.#isPaused];
    this.#advancer = new JobAdvancer({ ...options, term, lane: this.#lane, probe: this.storage, mayStart });
    this.#take = makeTake(options.store, this.#term, options.shares);
    this.#queue = makeWorkQueue({
      maxRunning: maxJobsAtOnce,
      maxStarting: maxStartsAtOnce,
      work: (jobId, claimStart) => this.#advancer.advance(jobId, claimStart),
      onError: noteFailedSteps({ metrics, log }),
      onRoom: () => void this.#takeFlight.run(),
    });
    this.#preempter = makePreempter({ ...options, term, mayTake: () => this.#mayTake(), onMark: again });
  }

  async start(): Promise<void> {
    await this.#renewLead();
    this.#stopListening = await this.#listen();
    this.#timers = [
      setInterval(() => void this.#renewLead(), this.#times.renewMs),
      setInterval(() => this.#heartbeat(), heartbeatMs),
    ];
    this.#heartbeat();
  }

  hint(jobId: string): void {
    if (this.#isLeading && !this.#isClosing) this.#queue.add(jobId);
  }

  isLeading(): boolean {
    return this.#isLeading;
  }

  /** Returns when the first worker ended whose job is not settled yet, `null` for none. */
  oldestUnsettled(): number | null {
    return this.#advancer.unsettled.oldest();
  }

  /** Starts no more attempts; the running ones go on. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Closes the runners, records the attempts that this ends as interrupted, and gives up leadership. */
  async close(): Promise<void> {
    const { store } = this.#options;
    this.#isClosing = true;
    this.#isPaused = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#stopListening();
    await within(maxStepMs, this.#queue.close());
    await this.#quietly('pass', 'closing the runners', () => this.#closeRunners());
    this.#lane.close();
    this.storage.close();
    await within(maxLaneMs, this.#lane.settled());
    await this.#quietly('lead', 'giving up the lead', () => leaveLead(store, this.#term));
  }

  #heartbeat(): void {
    void this.#requeueFlight.run().then(this.#takeFlight.run).then(this.#preemptFlight.run).then(this.#passFlight.run);
  }

  #renewLead(): Promise<void> {
    return this.#quietly('lead', 'taking the lead', async () => {
      let term: string | null = null;
      try {
        term = await takeLead(this.#options.store, this.#candidate(), this.#times.leaseMs);
      } finally {
        // Without Redis no controller leads.
        this.#lead(term);
      }
    });
  }

  /** Each term begins with a full pass, and so does each return to one. */
  #lead(term: string | null): void {
    const { store, metrics, shares } = this.#options;
    const isNew = term !== null && term !== this.#term;
    if (isNew) {
      this.#term = term;
      this.#take = makeTake(store, term, shares);
    }
    if (isNew || (term !== null && !this.#isLeading)) {
      this.#passAt = Number.NEGATIVE_INFINITY;
      this.#advancer.unsettled.clear();
    }
    this.#isLeading = term !== null;
    metrics.leader.set(this.#isLeading ? 1 : 0);
  }

  #candidate(): LeadCandidate {
    const { clock } = this.#options.store.connection;
    const isOff = Math.abs(clock.machineAheadMs()) > maxClockDifferenceMs;
    return { holder: this.#holder, term: this.#term, isOff };
  }

  #mayTake(): boolean {
    return this.#isLeading && !this.#isPaused;
  }

  async #requeueDelayed(): Promise<void> {
    if (this.#mayTake()) await requeueDelayed(this.#options.store);
  }

  /** Takes jobs only while the work queue has a free slot, so that new starts never delay settling. */
  async #takeJobs(): Promise<void> {
    if (!this.#mayTake() || !this.#queue.hasRoom()) return;
    for await (const jobId of this.#take()) {
      if (!this.#mayTake()) return;
      this.#queue.add(jobId);
      if (!this.#queue.hasRoom()) return;
    }
  }

  #flight(task: ControllerTask, work: string, run: () => Promise<void>): SingleFlight {
    return coalesceRuns(() => this.#quietly(task, work, run));
  }

  /** Queues every job that may need a step: those of runners, the active ones, and those whose wait for a start is over; offers turns. */
  async #fullPass(): Promise<void> {
    if (!this.#isLeading || this.#isClosing || performance.now() < this.#passAt) return;
    this.#passedAt = performance.now();
    this.#passAt = this.#passedAt + this.#times.fullPassMs;
    const { store, runners, limits, metrics, log } = this.#options;
    const observe = metrics.reconcile_seconds.startTimer();
    // Runners come first, because they may have to list the cluster; a failing one must not stop the pass.
    const listed = await Promise.allSettled(runners.map((runner) => runner.list()));
    for (const found of listed) {
      if (found.status === 'fulfilled') for (const name of found.value) this.#queue.add(jobIdOf(name));
      else log.warn('a runner cannot list its attempts', { error: found.reason });
    }
    const active = await readActiveJobs(store);
    for (const { id } of active) this.#queue.add(id);
    this.#advancer.unsettled.keepOnly(active.map(({ id }) => id));
    if (store.connection.clock.isSteady()) {
      const overdue = store.clock.now() - limits.maxQueueMs;
      for (const jobId of await listOverdue(store, overdue)) this.#queue.add(jobId);
    }
    if (this.#mayTake()) await offerTurns(store, new Set(active.map(({ account }) => account)));
    void this.#recordingsFlight.run();
    observe();
  }

  /** Subscribes to hints of Redis and the runners; returns how to unsubscribe. */
  async #listen(): Promise<() => Promise<void>> {
    const { store, runners } = this.#options;
    const unsubscribe = await store.connection.subscribe(channels.work, (jobId) => {
      if (jobId) this.hint(jobId);
      if (jobId) void this.#recordingsFlight.run();
      void this.#takeFlight.run();
    });
    const unwatch = runners.map((runner) => runner.watch((name) => this.hint(jobIdOf(name))));
    return async () => {
      for (const end of unwatch) end();
      await unsubscribe().catch(() => {
        // A subscription that cannot be ended brings hints that are ignored from now on.
      });
    };
  }

  /** Advances each job whose worker ends with its runner, so that its attempt is recorded as interrupted. */
  async #closeRunners(): Promise<void> {
    const ended = await Promise.all(this.#options.runners.map((runner) => runner.close()));
    const steps = ended.flat().map((name) => this.#advancer.advance(jobIdOf(name), () => false));
    await within(maxStepMs, Promise.all(steps));
  }

  /**
   * Has one of the next heartbeats pass: what was asked of Redis may have been done, such as the take of a job that no hint names. Not the
   * heartbeat that failed, because Redis is mostly still away, and none within 5 s of the last pass, because a pass lists the cluster.
   */
  #passSoon(): void {
    const soon = Math.max(performance.now() + heartbeatMs / 2, this.#passedAt + minPassMs);
    this.#passAt = Math.min(this.#passAt, soon);
  }

  /** Logs an error instead of throwing it: the next heartbeat repeats the work. */
  async #quietly(task: ControllerTask, work: string, run: () => Promise<unknown>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#options.metrics.upkeep_errors_total.inc({ task });
      this.#warn(`${work} failed`, { error });
      if (isRefusal(error, 'unavailable')) this.#passSoon();
    }
  }
}
