import { shareRun } from './single-flight.ts';

/**
 * Runs a task at an interval, never twice at once, and goes on after a failure. A task without `onError` handles its own failures: what
 * it throws all the same ends the process. After `isClosing` returns true it begins nothing more.
 */
export function startPeriodicTask(
  task: (isClosing: () => boolean) => Promise<void>,
  intervalMs: number,
  onError?: (error: unknown) => void,
) {
  let isClosing = false;
  const flight = shareRun(() => task(() => isClosing).catch(onError));
  const timer = setInterval(() => void flight.run(), intervalMs);
  return {
    /** Runs the task at once; one that runs already is awaited instead. */
    wake: flight.run,
    /** Resolves when the run under way has ended. */
    async close() {
      isClosing = true;
      clearInterval(timer);
      await flight.settled();
    },
  };
}
