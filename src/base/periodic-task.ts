import { shareRun } from './single-flight.ts';

export interface PeriodicTask {
  /** Runs the task at once; one that runs already is awaited instead. */
  wake(): Promise<void>;
  /** Resolves when the run under way has ended. */
  close(): Promise<void>;
}

/** Runs a task at an interval, never twice at once, whether or not it failed before. `isClosing` tells it to begin nothing more. */
export function startPeriodicTask(
  task: (isClosing: () => boolean) => Promise<void>,
  intervalMs: number,
  onError: (error: unknown) => void,
): PeriodicTask {
  let isClosing = false;
  const flight = shareRun(() => task(() => isClosing).catch(onError));
  const timer = setInterval(() => void flight.run(), intervalMs);
  return {
    wake: flight.run,
    async close() {
      isClosing = true;
      clearInterval(timer);
      await flight.settled();
    },
  };
}
