import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { JobLimits } from '../model/next.ts';
import { jobIdOf, type Runner } from '../runners/runner.ts';
import { leaveLead, takeLead } from '../store/jobs/leadership.ts';
import { listActive, listOverdue } from '../store/jobs/open-work.ts';
import { requeueDelayed } from '../store/jobs/requeue-delayed.ts';
import { makeTake } from '../store/jobs/take-jobs.ts';
import { channels } from '../store/keys.ts';
import { type AdvanceOptions, makeAdvance } from './advance-job.ts';
import { makeWorkQueue, type WorkQueue } from './work-queue.ts';

export interface ControllerOptions extends Omit<AdvanceOptions, 'holder' | 'mayStart'> {
  /** Attempts at once. */
  readonly slots: number;
  readonly limits: JobLimits;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly times?: Partial<ControllerTimes>;
}

/** In milliseconds. */
export interface ControllerTimes {
  /** How long the leadership lasts that is not renewed. */
  readonly leaseMs: number;
  /** From one look at the leadership to the next. */
  readonly lookMs: number;
  /** From one full pass to the next. */
  readonly fullPassMs: number;
}

/** Brings every job to its end while it leads. */
export interface Controller {
  /** Something about a job may have changed. */
  hint(job: string): void;
  isLeading(): boolean;
  /** Starts nothing more; what runs goes on. */
  pause(): void;
  /** Starts nothing more, leaves the runners, records attempts of workers that ended so as interrupted, and gives up the leadership. */
  close(): Promise<void>;
}

const usual: ControllerTimes = { leaseMs: 15_000, lookMs: 2_000, fullPassMs: 30_000 };
const beatMilliseconds = 500;
const jobsAtOnce = 32;
/** Runners are left within the time that the whole has, also when a step of a job hangs. */
const stepMilliseconds = 3000;

/** Hints make it fast; a full pass every 30 s makes it certain. */
export async function startController(options: ControllerOptions): Promise<Controller> {
  const { store, runners, log } = options;
  const times = { ...usual, ...options.times };
  const holder = randomUUID();
  let isClosing = false;
  let isPaused = false;
  let passedAt = Number.NEGATIVE_INFINITY;
  const apply = makeAdvance({ ...options, holder, mayStart: () => !isPaused });
  const roomy = () => void dispatch();
  const queue = makeWorkQueue({ maxRunning: jobsAtOnce, work: apply, onError: tellFailure(options), onRoom: roomy });
  const quietly = makeQuiet(log);

  // Without the record nobody leads; when it is back, everything is looked at anew.
  const lead = makeLead(options, holder, times.leaseMs, () => {
    passedAt = Number.NEGATIVE_INFINITY;
  });
  const { isLeading } = lead;
  const look = quietly('taking the lead', lead.look);
  const mayTake = () => isLeading() && !isPaused;
  const whileTaking = (what: string, work: () => Promise<unknown>) =>
    once(
      quietly(what, async () => {
        if (mayTake()) await work();
      }),
    );
  const requeue = whileTaking('bringing back what waited', () => requeueDelayed(store));
  const dispatch = whileTaking('taking jobs', makeFill(makeTake(store, holder, options.slots), queue, mayTake));
  const pass = once(
    quietly('the full pass', async () => {
      if (!isLeading() || isClosing || performance.now() - passedAt < times.fullPassMs) return;
      passedAt = performance.now();
      await addAll(options, queue.add);
    }),
  );

  const hint = (job: string) => {
    if (isLeading() && !isClosing) queue.add(job);
  };
  await look();
  const stopHearing = await hear(options, hint, dispatch);
  const beat = () => void requeue().then(dispatch).then(pass);
  const timers = [setInterval(look, times.lookMs), setInterval(beat, beatMilliseconds)];
  beat();
  return {
    hint,
    isLeading,
    pause: () => {
      isPaused = true;
    },
    async close() {
      isClosing = true;
      isPaused = true;
      for (const timer of timers) clearInterval(timer);
      await stopHearing();
      await within(stepMilliseconds, queue.close());
      await quietly('leaving the runners', () => leaveRunners(runners, apply))();
      await quietly('giving up the lead', () => leaveLead(store, holder))();
    },
  };
}

/** Asks for the lead; `won` is called each time it is got anew. */
function makeLead({ store, metrics }: ControllerOptions, holder: string, lease: number, won: () => void) {
  let isLeading = false;
  const look = async () => {
    let leads = false;
    try {
      leads = await takeLead(store, holder, lease);
    } finally {
      if (leads && !isLeading) won();
      isLeading = leads;
      metrics.leader.set(leads ? 1 : 0);
    }
  };
  return { isLeading: () => isLeading, look };
}

type Add = (job: string) => void;

/** Gives what takes jobs while it may, no more than can begin at once: what has ended is not to wait behind them. */
function makeFill(take: () => AsyncIterable<string>, { add, hasRoom }: WorkQueue, mayTake: () => boolean) {
  return async (): Promise<void> => {
    if (!hasRoom()) return;
    for await (const id of take()) {
      if (!mayTake()) return;
      add(id);
      if (!hasRoom()) return;
    }
  };
}

/** Adds every job that may need something: the active ones, those of runners, and those that wait too long. */
async function addAll({ store, runners, limits, metrics, log }: ControllerOptions, add: Add): Promise<void> {
  const ended = metrics.reconcile_seconds.startTimer();
  // Asked first, because they may have to look around anew; one that cannot look keeps nobody from the rest.
  const listed = await Promise.allSettled(runners.map((runner) => runner.list()));
  for (const found of listed) {
    if (found.status === 'fulfilled') for (const name of found.value) add(jobIdOf(name));
    else log.warn('a runner cannot say what it runs', { error: found.reason });
  }
  for (const id of await listActive(store)) add(id);
  const overdue = store.clock.now() - limits.maxQueueMs;
  for (const id of await listOverdue(store, overdue)) add(id);
  ended();
}

/** Hears hints from the record and from the runners, until what it gives is called. */
async function hear(
  { store, runners }: ControllerOptions,
  hint: Add,
  dispatch: () => Promise<void>,
): Promise<() => Promise<void>> {
  const unsubscribe = await store.connection.subscribe(channels.work, (job) => {
    if (job) hint(job);
    void dispatch();
  });
  const unwatch = runners.map((runner) => runner.watch((name) => hint(jobIdOf(name))));
  return async () => {
    for (const end of unwatch) end();
    await unsubscribe().catch(() => {
      // A subscription that cannot be ended brings hints that nobody hears.
    });
  };
}

/** Leaves the runners, and looks once more at each job whose worker ended so: its attempt is recorded as interrupted. */
async function leaveRunners(runners: readonly Runner[], apply: (job: string) => Promise<unknown>): Promise<void> {
  const ended = await Promise.all(runners.map((runner) => runner.close()));
  await within(stepMilliseconds, Promise.all(ended.flat().map((name) => apply(jobIdOf(name)))));
}

/** Waits for work, but no longer than some time. */
async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const isDone = new AbortController();
  const late = pause(milliseconds, undefined, { signal: isDone.signal }).catch(() => {
    // Nobody waits for it any more.
  });
  try {
    await Promise.race([work, late]);
  } finally {
    isDone.abort();
  }
}

function tellFailure({ metrics, log }: Pick<ControllerOptions, 'metrics' | 'log'>) {
  return (job: string, error: unknown) => {
    metrics.reconcile_errors_total.inc();
    log.warn('a job could not be looked after: later again', { job, error });
  };
}

/** Makes work whose errors are only told: it is done again by itself. */
function makeQuiet(log: Log) {
  return (what: string, work: () => Promise<void>) => () =>
    work().catch((error) => log.warn(`${what} failed`, { error }));
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
