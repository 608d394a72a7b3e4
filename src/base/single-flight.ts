export interface SingleFlight<T = void> {
  /** Starts a run unless one is under way; the promise ends with it, and with the one after it if that was asked for. */
  readonly run: () => Promise<T>;
  /** Waits for the run under way, if any, and starts none. */
  readonly settled: () => Promise<T | undefined>;
}

/** Callers that come during a run share it. */
export function shareRun<T>(work: () => Promise<T>): SingleFlight<T> {
  let running: Promise<T> | null = null;
  return {
    run: () => {
      running ??= work().finally(() => {
        running = null;
      });
      return running;
    },
    settled: async () => running ?? undefined,
  };
}

/** However many callers come during a run, one more follows it: the run under way may have missed the reason they came for. */
export function coalesceRuns(work: () => Promise<void>): SingleFlight {
  let isWanted = false;
  const { run, settled } = shareRun(async () => {
    while (isWanted) {
      isWanted = false;
      await work();
    }
  });
  return {
    run: () => {
      isWanted = true;
      return run();
    },
    settled,
  };
}
