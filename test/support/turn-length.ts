/** Returns the processor time of this thread in milliseconds. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Watches how long other work in this process waits for its turn, in processor time of its thread: what other programs of the
 * machine take does not count. Returns a function that ends it and returns the longest turn in milliseconds.
 */
export function watchTurns(): () => number {
  let [last, longest] = [threadMs(), 0];
  const look = () => {
    const now = threadMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  return () => {
    clearInterval(timer);
    look();
    return longest;
  };
}

const lookMs = 2;
const busy = { watches: 0, timer: undefined as NodeJS.Timeout | undefined, ms: 0, lastMs: 0, lastCpuMs: 0 };

function look(): void {
  const [now, cpu] = [performance.now(), threadMs()];
  const ms = Math.max(cpu - busy.lastCpuMs, now - busy.lastMs - lookMs);
  Object.assign(busy, { ms: busy.ms + ms, lastMs: now, lastCpuMs: cpu });
}

/**
 * Watches for how long this thread worked, or had work to do and no processor, because other programs had all of them. Returns
 * a function that ends it and returns that in milliseconds. All watches share one timer.
 */
function watchBusy(): () => number {
  if (busy.watches++ === 0) {
    Object.assign(busy, { lastMs: performance.now(), lastCpuMs: threadMs() });
    busy.timer = setInterval(look, lookMs);
  }
  const before = busy.ms;
  return () => {
    // The end may come before the timer has seen what kept this thread.
    look();
    if (--busy.watches === 0) clearInterval(busy.timer);
    return busy.ms - before;
  };
}

/**
 * Measures for how long a call waits whose client and server share this thread with many others: the time in which the thread
 * was busy, with those or with other programs, is no part of that.
 */
export async function timed<T>(call: Promise<T>): Promise<{ readonly answer: T; readonly seconds: number }> {
  const began = performance.now();
  const endWatch = watchBusy();
  try {
    const answer = await call;
    return { answer, seconds: (performance.now() - began - endWatch()) / 1000 };
  } catch (error) {
    endWatch();
    throw error;
  }
}
