/** Works on ids: one worker per id at a time, many ids at once, later again after an error. */
export interface Queue {
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

/**
 * `work` answers after how many milliseconds the id is to be looked at again, `null` for not by itself; an error means later.
 * `roomy` is called when there is room again for who asked in vain.
 */
export function makeQueue(
  atOnce: number,
  work: (id: string) => Promise<number | null>,
  failed: (id: string, error: unknown) => void,
  roomy: () => void = () => undefined,
): Queue {
  const waiting = new Set<string>();
  const running = new Set<string>();
  const again = new Set<string>();
  const alarms = makeAlarms((id) => add(id));
  const failures = new Map<string, number>();
  const jobs = new Set<Promise<void>>();
  let isClosed = false;
  let isAskedFor = false;

  const add = (id: string, delay = 0) => {
    if (isClosed) return;
    if (delay <= 0) {
      alarms.forget(id);
      if (running.has(id)) again.add(id);
      else waiting.add(id);
      return drain();
    }
    if (!waiting.has(id)) alarms.set(id, delay);
  };
  const drain = () => {
    for (const id of waiting) {
      if (running.size >= atOnce) return;
      waiting.delete(id);
      running.add(id);
      const job = run(id).finally(() => jobs.delete(job));
      jobs.add(job);
    }
    if (!isAskedFor || running.size >= atOnce) return;
    isAskedFor = false;
    roomy();
  };
  const run = async (id: string) => {
    let delay: number | null;
    try {
      delay = await work(id);
      failures.delete(id);
    } catch (error) {
      const count = (failures.get(id) ?? 0) + 1;
      failures.set(id, count);
      delay = Math.min(longestDelay, firstDelay * 2 ** (count - 1));
      failed(id, error);
    }
    running.delete(id);
    if (again.delete(id)) add(id);
    else if (delay !== null) add(id, Math.max(1, delay));
    drain();
  };
  return {
    add,
    hasRoom() {
      isAskedFor = running.size >= atOnce;
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
