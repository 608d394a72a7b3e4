import { randomUUID } from 'node:crypto';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Limits } from '../model/next.ts';
import { jobIn } from '../runners/runner.ts';
import { channels } from '../store/keys.ts';
import { leaveLead, takeLead } from '../store/leader.ts';
import { requeueDelayed, takeJob } from '../store/lifecycle.ts';
import { listActive, listOverdue } from '../store/openings.ts';
import { type ApplyOptions, makeApply } from './apply.ts';
import { makeQueue } from './queue.ts';

export interface ControllerOptions extends Omit<ApplyOptions, 'holder'> {
  /** Attempts at once. */
  readonly slots: number;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly times?: Partial<ControllerTimes>;
}

/** In milliseconds. */
export interface ControllerTimes {
  /** How long the leadership lasts that is not renewed. */
  readonly lease: number;
  /** From one full pass to the next. */
  readonly pass: number;
}

/** Brings every job to its end while it leads. */
export interface Controller {
  /** Something about a job may have changed. */
  hint(job: string): void;
  isLeading(): boolean;
  /** Starts nothing more; what runs goes on. */
  pause(): void;
  /** Starts nothing more, leaves the runners and gives up the leadership. Attempts of workers that end with it count as interrupted. */
  close(): Promise<void>;
}

const usual: ControllerTimes = { lease: 15_000, pass: 30_000 };
const beatMilliseconds = 500;
const jobsAtOnce = 32;

/** Hints make it fast; a full pass every 30 s makes it certain. */
export async function startController(options: ControllerOptions): Promise<Controller> {
  const { store, runners, log, metrics } = options;
  const times = { ...usual, ...options.times };
  const holder = randomUUID();
  let isLeading = false;
  let isClosing = false;
  let isPaused = false;
  let passedAt = Number.NEGATIVE_INFINITY;
  const queue = makeQueue(jobsAtOnce, makeApply({ ...options, holder }), (job, error) => {
    metrics.reconcile_errors_total.inc();
    log.warn('a job could not be looked after: later again', { job, error });
  });
  const quietly = (what: string, work: () => Promise<void>) => () =>
    work().catch((error) => log.warn(`${what} failed`, { error }));

  const lead = quietly('taking the lead', async () => {
    const leads = await takeLead(store, holder, times.lease);
    if (leads && !isLeading) passedAt = Number.NEGATIVE_INFINITY;
    isLeading = leads;
    metrics.leader.set(leads ? 1 : 0);
  });
  const dispatch = once(
    quietly('taking jobs', async () => {
      if (isLeading && !isPaused) await takeJobs(options, holder, queue.add, () => isPaused);
    }),
  );
  const pass = once(
    quietly('the full pass', async () => {
      if (!isLeading || isClosing || performance.now() - passedAt < times.pass) return;
      passedAt = performance.now();
      await addAll(options, queue.add);
    }),
  );

  const hint = (job: string) => {
    if (!isLeading || isClosing) return;
    queue.add(job);
    void dispatch();
  };
  await lead();
  const stopHearing = await hear(options, hint);
  const beat = () => void dispatch().then(pass);
  const timers = [setInterval(lead, times.lease / 3), setInterval(beat, beatMilliseconds)];
  beat();
  return {
    hint,
    isLeading: () => isLeading,
    pause: () => {
      isPaused = true;
    },
    async close() {
      isClosing = true;
      isPaused = true;
      for (const timer of timers) clearInterval(timer);
      await stopHearing();
      await queue.close();
      await Promise.all(runners.map((runner) => runner.close()));
      await leaveLead(store, holder).catch((error) => log.warn('the lead could not be given up', { error }));
    },
  };
}

type Add = (job: string) => void;

/** Takes jobs from the queue while there are free slots. */
async function takeJobs(
  { store, slots }: ControllerOptions,
  holder: string,
  add: Add,
  isPaused: () => boolean,
): Promise<void> {
  await requeueDelayed(store);
  for (let id = await takeJob(store, holder, slots); id !== null && !isPaused(); ) {
    add(id);
    id = await takeJob(store, holder, slots);
  }
}

/** Adds every job that may need something: the active ones, those of runners, and those that wait too long. */
async function addAll({ store, runners, limits, metrics, log }: ControllerOptions, add: Add): Promise<void> {
  const ended = metrics.reconcile_seconds.startTimer();
  // Asked first, because they may have to look around anew; one that cannot look keeps nobody from the rest.
  const listed = await Promise.allSettled(runners.map((runner) => runner.list()));
  for (const found of listed) {
    if (found.status === 'fulfilled') for (const name of found.value) add(jobIn(name));
    else log.warn('a runner cannot say what it runs', { error: found.reason });
  }
  for (const id of await listActive(store)) add(id);
  const overdue = store.clock.now() - limits.queueMilliseconds;
  for (const id of await listOverdue(store, overdue)) add(id);
  ended();
}

/** Hears hints from the record and from the runners, until what it gives is called. */
async function hear({ store, runners }: ControllerOptions, hint: Add): Promise<() => Promise<void>> {
  const unsubscribe = await store.connection.subscribe(channels.work, hint);
  const unwatch = runners.map((runner) => runner.watch((name) => hint(jobIn(name))));
  return async () => {
    for (const end of unwatch) end();
    await unsubscribe().catch(() => {
      // A subscription that cannot be ended brings hints that nobody hears.
    });
  };
}

/** One at a time: asking while it runs lets it run once more. */
function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let isWanted = false;
  const run = async () => {
    do {
      isWanted = false;
      await work();
    } while (isWanted);
    running = null;
  };
  return () => {
    isWanted = true;
    running ??= run();
    return running;
  };
}
