import { backoffMs } from '../base/backoff.ts';

export type WorkQueue = ReturnType<typeof makeWorkQueue>;

const backoff = { firstMs: 200, maxMs: 5_000 };

interface WorkQueueOptions {
  readonly maxRunning: number;
  /** Runs that have claimed a start, among those. */
  readonly maxStarting: number;
  /**
   * Returns the delay in milliseconds until the id is queued again, `null` for never. It claims a start before it makes a worker; after a
   * false it ends, and is queued again once another start has ended.
   */
  readonly work: (id: string, claimStart: () => boolean) => Promise<number | null>;
  readonly onError: (id: string, error: unknown) => void;
  readonly onRoom: () => void;
}

/** Runs work by id: many ids at once, each id once at a time; repeats it with back-off after an error. */
export function makeWorkQueue({ maxRunning, maxStarting, work, onError, onRoom }: WorkQueueOptions) {
  const waiting = new Set<string>();
  const running = new Set<string>();
  const starts = makeStarts(maxStarting);
  const again = new Set<string>();
  const tryWork = withBackoff(work, onError);
  const runs = new Set<Promise<void>>();
  const delayed = makeDelays((id) => add(id));
  let isClosed = false;
  let isRoomWanted = false;

  const add = (id: string, delayMs = 0) => {
    if (isClosed || (delayMs > 0 && waiting.has(id))) return;
    if (delayMs > 0) return delayed.set(id, delayMs);
    delayed.delete(id);
    starts.forget(id);
    if (running.has(id)) again.add(id);
    else waiting.add(id);
    startRuns();
  };
  const hasRoom = () => running.size + starts.countHeld() < maxRunning;
  const startRuns = () => {
    for (const id of waiting) {
      if (running.size >= maxRunning) return;
      waiting.delete(id);
      running.add(id);
      const run = runOne(id).finally(() => runs.delete(run));
      runs.add(run);
    }
    if (!isRoomWanted || !hasRoom()) return;
    isRoomWanted = false;
    onRoom();
  };
  const runOne = async (id: string) => {
    const delayMs = await tryWork(id, () => starts.claim(id));
    running.delete(id);
    const next = starts.end(id);
    if (next !== null) add(next);
    if (again.delete(id)) add(id);
    else if (delayMs !== null) add(id, Math.max(1, delayMs));
    startRuns();
  };
  return {
    /** An id that is queued already is only brought forward. */
    add,
    /** True when another id would run at once, and few wait for a start; after a false, `onRoom` is called when that is true again. */
    hasRoom(): boolean {
      isRoomWanted = !hasRoom();
      return !isRoomWanted;
    },
    /** Drops what is queued and waits for the runs under way. */
    async close(): Promise<void> {
      isClosed = true;
      delayed.clear();
      waiting.clear();
      starts.clear();
      await Promise.all(runs);
    },
  };
}

/** Ids whose runs make a worker or are about to, and those that wait until one of these has ended, in the order of their claims. */
function makeStarts(max: number) {
  const running = new Set<string>();
  const held = new Set<string>();
  return {
    countHeld: () => held.size,
    claim(id: string): boolean {
      if (running.size < max) running.add(id);
      else if (!running.has(id)) held.add(id);
      return running.has(id);
    },
    /** Ends a run, which may have claimed nothing. Returns the id that its start falls to, else `null`. */
    end(id: string): string | null {
      running.delete(id);
      const [next = null] = held;
      if (next === null || running.size >= max) return null;
      held.delete(next);
      running.add(next);
      return next;
    },
    forget: (id: string) => held.delete(id),
    clear: () => held.clear(),
  };
}

/** Returns work that gives the delay of a back-off instead of its error. */
function withBackoff(work: WorkQueueOptions['work'], onError: WorkQueueOptions['onError']): WorkQueueOptions['work'] {
  const failures = new Map<string, number>();
  return async (id, claimStart) => {
    let isHeld = false;
    const claim = () => {
      isHeld = !claimStart();
      return !isHeld;
    };
    try {
      const delayMs = await work(id, claim);
      // A start that waits has not succeeded yet.
      if (!isHeld) failures.delete(id);
      return delayMs;
    } catch (error) {
      const count = (failures.get(id) ?? 0) + 1;
      failures.set(id, count);
      onError(id, error);
      return backoffMs(count, backoff);
    }
  };
}

/** A longer timer of Node fires at once: 24.8 days. */
const maxTimerMs = 2 ** 31 - 1;

/** One timer for each id; of several delays of an id the earliest counts. */
function makeDelays(onTime: (id: string) => void) {
  const timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly at: number }>();
  const remove = (id: string) => {
    clearTimeout(timers.get(id)?.timer);
    timers.delete(id);
  };
  return {
    delete: remove,
    set(id: string, delayMs: number) {
      const at = performance.now() + delayMs;
      const present = timers.get(id);
      if (present && present.at <= at) return;
      remove(id);
      timers.set(id, { at, timer: setTimeout(onTime, Math.min(delayMs, maxTimerMs), id) });
    },
    clear() {
      for (const id of [...timers.keys()]) remove(id);
    },
  };
}
