import { randomUUID } from 'node:crypto';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Limits } from '../model/next.ts';
import { jobIn, type Runner } from '../runners/runner.ts';
import { channels } from '../store/keys.ts';
import { leaveLead, takeLead } from '../store/leader.ts';
import { requeueDelayed, takeJob } from '../store/lifecycle.ts';
import { listActive, listOverdue } from '../store/openings.ts';
import { type ApplyOptions, makeApply } from './apply.ts';
import { makeQueue } from './queue.ts';

export interface ControllerOptions extends Omit<ApplyOptions, 'holder' | 'mayStart'> {
  readonly runners: readonly Runner[];
  /** Attempts at once. */
  readonly slots: number;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Brings every job to its end while it leads. */
export interface Controller {
  /** Something about a job may have changed. */
  hint(job: string): void;
  isLeading(): boolean;
  /** Starts nothing more; what runs goes on. */
  pause(): void;
  /** Starts nothing more, stops its workers, records their attempts as interrupted, and gives up the leadership. */
  close(): Promise<void>;
}

const leadMilliseconds = 2_000;
const beatMilliseconds = 500;
const passMilliseconds = 30_000;
const jobsAtOnce = 32;

/** Hints make it fast; a full pass every 30 s makes it certain. */
export async function startController(options: ControllerOptions): Promise<Controller> {
  const { store, runners, log, metrics } = options;
  const holder = randomUUID();
  let isClosing = false;
  let isPaused = false;
  let passedAt = Number.NEGATIVE_INFINITY;
  const apply = makeApply({ ...options, holder, mayStart: () => !isPaused });
  const queue = makeQueue(jobsAtOnce, apply, (job, error) => {
    metrics.reconcile_errors_total.inc();
    log.warn('a job could not be looked after: later again', { job, error });
  });
  const quietly = makeQuiet(log);

  // Without the record nobody leads; when it is back, everything is looked at anew.
  const lead = makeLead(options, holder, () => {
    passedAt = Number.NEGATIVE_INFINITY;
  });
  const { isLeading } = lead;
  const look = quietly('taking the lead', lead.look);
  const dispatch = once(
    quietly('taking jobs', async () => {
      if (isLeading() && !isPaused) await takeJobs(options, holder, queue.add, () => isPaused);
    }),
  );
  const pass = once(
    quietly('the full pass', async () => {
      if (!isLeading() || isClosing || performance.now() - passedAt < passMilliseconds) return;
      passedAt = performance.now();
      await addAll(options, queue.add);
    }),
  );

  const hint = (job: string) => {
    if (!isLeading() || isClosing) return;
    queue.add(job);
    void dispatch();
  };
  await look();
  const stopHearing = await hear(options, hint);
  const beat = () => void dispatch().then(pass);
  const timers = [setInterval(look, leadMilliseconds), setInterval(beat, beatMilliseconds)];
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
      await queue.close();
      await quietly('ending the workers', () => endWorkers(runners, apply))();
      await quietly('giving up the lead', () => leaveLead(store, holder))();
    },
  };
}

/** Asks for the lead; `won` is called each time it is got anew. */
function makeLead({ store, metrics }: ControllerOptions, holder: string, won: () => void) {
  let isLeading = false;
  const look = async () => {
    let leads = false;
    try {
      leads = await takeLead(store, holder);
    } finally {
      if (leads && !isLeading) won();
      isLeading = leads;
      metrics.leader.set(leads ? 1 : 0);
    }
  };
  return { isLeading: () => isLeading, look };
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
async function addAll({ store, runners, limits, metrics }: ControllerOptions, add: Add): Promise<void> {
  const ended = metrics.reconcile_seconds.startTimer();
  for (const id of await listActive(store)) add(id);
  for (const runner of runners) for (const name of await runner.list()) add(jobIn(name));
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

/** Ends every worker, and looks once more at each job that had one, so that its attempt is recorded as interrupted. */
async function endWorkers(runners: readonly Runner[], apply: (job: string) => Promise<unknown>): Promise<void> {
  const end = async (runner: Runner) => {
    const names = await runner.list();
    await Promise.all(names.map((name) => runner.stop(name)));
    await Promise.all(names.map((name) => apply(jobIn(name))));
  };
  await Promise.all(runners.map(end));
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
