import { setTimeout as pause } from 'node:timers/promises';

export interface BackoffLimits {
  /** Delay after the first failure; each further one doubles it. */
  readonly firstMs: number;
  readonly maxMs: number;
  /** Multiplies each delay by 0.5 to 1.5, so that clients which failed together do not come back together. */
  readonly hasJitter?: boolean;
}

interface RetryOptions extends BackoffLimits {
  /** Ends the retries; the last error of the action is thrown, even in the middle of a delay. */
  readonly signal?: AbortSignal;
  /** Returns the delay before the next try, usually the given one, or `null` to throw the error. Without it every error is retried. */
  readonly delayOf?: (error: unknown, delayMs: number, failures: number) => number | null;
}

/** Returns the delay after that many failures in a row, 1 or more. */
export function backoffMs(failures: number, { firstMs, maxMs, hasJitter = false }: BackoffLimits): number {
  const delayMs = Math.min(maxMs, firstMs * 2 ** (failures - 1));
  return hasJitter ? delayMs * (0.5 + Math.random()) : delayMs;
}

/** Repeats an action until it succeeds. An action that succeeds in part calls `reset`: the next delay is the first one again. */
export async function retry<T>(action: (reset: () => void) => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, delayOf = (_, delayMs) => delayMs } = options;
  let failures = 0;
  const reset = () => {
    failures = 0;
  };
  for (;;) {
    try {
      return await action(reset);
    } catch (error) {
      const delayMs = signal?.aborted ? null : delayOf(error, backoffMs(++failures, options), failures);
      if (delayMs === null) throw error;
      await pause(delayMs, undefined, { signal }).catch(() => {
        throw error;
      });
    }
  }
}
