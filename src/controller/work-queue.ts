/** Works on ids: one worker per id at a time, many ids at once, later again after an error. */
export interface WorkQueue {
  /** Looks at an id soon, or after some time; asking again while it waits changes nothing but brings it forward. */
  add(id: string, delayMilliseconds?: number): void;
  /** Whether it would look at another id at once; if not, it calls back when it would. */
  hasRoom(): boolean;
  /** Takes in nothing more and waits for what is under way. */
  close(): Promise<void>;
}

const firstDelay = 200;
/** Short, for what was away is not waited for much longer than it was. */
const longestDelay = 5_000;

export interface WorkQueueOptions {
  readonly maxRunning: number;
  /** Answers after how many milliseconds the id is to be looked at again, `null` for not by itself; an error means later. */
  readonly work: (id: string) => Promise<number | null>;
  readonly onError: (id: string, error: unknown) => void;
  /** There is room again for who asked in vain. */
  readonly onRoom: () => void;
}

/** Makes an empty one. */
export function makeWorkQueue({ maxRunning, work, onError, onRoom }: WorkQueueOptions): WorkQueue {
  const waiting = new Set<string>();
  const running = new Set<string>();
  const again = new Set<string>();
  const alarms = makeAlarms((id) => add(id));
  const failures = makeFailures();
  const jobs = new Set<Promise<void>>();
  let isClosed = false;
  let isAskedFor = false;

  const add = (id: string, delay = 0) => {
    if (isClosed || (delay > 0 && waiting.has(id))) return;
    if (delay > 0) return alarms.set(id, delay);
    alarms.forget(id);
    if (running.has(id)) again.add(id);
    else waiting.add(id);
    drain();
  };
  const drain = () => {
    for (const id of waiting) {
      if (running.size >= maxRunning) return;
      waiting.delete(id);
      running.add(id);
      const job = run(id).finally(() => jobs.delete(job));
      jobs.add(job);
    }
    if (!isAskedFor || running.size >= maxRunning) return;
    isAskedFor = false;
    onRoom();
  };
  const run = async (id: string) => {
    let delay: number | null;
    try {
      delay = await work(id);
      failures.forget(id);
    } catch (error) {
      delay = failures.count(id);
      onError(id, error);
    }
    running.delete(id);
    if (again.delete(id)) add(id);
    else if (delay !== null) add(id, Math.max(1, delay));
    drain();
  };
  return {
    add,
    hasRoom() {
      isAskedFor = running.size >= maxRunning;
      return !isAskedFor;
    },
    async close() {
      isClosed = true;
      alarms.clear();
      waiting.clear();
      await Promise.all(jobs);
    },
  };
}

/** Counts failures in a row; of each it answers how long to wait after it. */
function makeFailures() {
  const counts = new Map<string, number>();
  return {
    count(id: string): number {
      const before = counts.get(id) ?? 0;
      counts.set(id, before + 1);
      return Math.min(longestDelay, firstDelay * 2 ** before);
    },
    forget: (id: string) => void counts.delete(id),
  };
}

/** Rings for an id after some time; of several times for one id the earliest counts. */
function makeAlarms(ring: (id: string) => void) {
  const alarms = new Map<string, { timer: NodeJS.Timeout; at: number }>();
  const forget = (id: string) => {
    clearTimeout(alarms.get(id)?.timer);
    alarms.delete(id);
  };
  return {
    forget,
    set(id: string, delay: number) {
      const at = performance.now() + delay;
      const present = alarms.get(id);
      if (present && present.at <= at) return;
      forget(id);
      alarms.set(id, { at, timer: setTimeout(ring, delay, id) });
    },
    clear() {
      for (const id of [...alarms.keys()]) forget(id);
    },
  };
}
