import { backoffMs } from '../base/backoff.ts';

/** Runs work by id: many ids at once, each id once at a time; repeats it with back-off after an error. */
export interface WorkQueue {
  /** An id that is queued already is only brought forward. */
  add(id: string, delayMs?: number): void;
  /** True when another id would run at once; after a false, `onRoom` is called when a slot frees up. */
  hasRoom(): boolean;
  /** Drops what is queued and waits for the runs under way. */
  close(): Promise<void>;
}

const backoff = { firstMs: 200, maxMs: 5_000 };

interface WorkQueueOptions {
  readonly maxRunning: number;
  /** Returns the delay in milliseconds until the id is queued again, `null` for never. */
  readonly work: (id: string) => Promise<number | null>;
  readonly onError: (id: string, error: unknown) => void;
  /** Called once when a slot frees up after `hasRoom` returned false. */
  readonly onRoom: () => void;
}

export function makeWorkQueue({ maxRunning, work, onError, onRoom }: WorkQueueOptions): WorkQueue {
  const waiting = new Set<string>();
  const running = new Set<string>();
  /** Ids that were added while they ran. */
  const again = new Set<string>();
  const failures = new Map<string, number>();
  const runs = new Set<Promise<void>>();
  const delayed = makeDelays((id) => add(id));
  let isClosed = false;
  let isRoomWanted = false;

  const add = (id: string, delayMs = 0) => {
    if (isClosed || (delayMs > 0 && waiting.has(id))) return;
    if (delayMs > 0) return delayed.set(id, delayMs);
    delayed.delete(id);
    if (running.has(id)) again.add(id);
    else waiting.add(id);
    startRuns();
  };
  const startRuns = () => {
    for (const id of waiting) {
      if (running.size >= maxRunning) return;
      waiting.delete(id);
      running.add(id);
      const run = runOne(id).finally(() => runs.delete(run));
      runs.add(run);
    }
    if (!isRoomWanted || running.size >= maxRunning) return;
    isRoomWanted = false;
    onRoom();
  };
  const runOne = async (id: string) => {
    let delayMs: number | null;
    try {
      delayMs = await work(id);
      failures.delete(id);
    } catch (error) {
      delayMs = countFailure(failures, id);
      onError(id, error);
    }
    running.delete(id);
    if (again.delete(id)) add(id);
    else if (delayMs !== null) add(id, Math.max(1, delayMs));
    startRuns();
  };
  return {
    add,
    hasRoom() {
      isRoomWanted = running.size >= maxRunning;
      return !isRoomWanted;
    },
    async close() {
      isClosed = true;
      delayed.clear();
      waiting.clear();
      await Promise.all(runs);
    },
  };
}

function countFailure(failures: Map<string, number>, id: string): number {
  const count = (failures.get(id) ?? 0) + 1;
  failures.set(id, count);
  return backoffMs(count, backoff);
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
