import { setTimeout as pause } from 'node:timers/promises';
import { backoffMs } from '../base/backoff.ts';
import { codeOf } from '../base/errors.ts';

/** Limits of the wait for a service that does not answer. */
export interface PatienceLimits {
  /** Limit until the service has accepted a job. */
  readonly firstMs: number;
  /** Limit from then on. */
  readonly acceptedMs: number;
  /** Longest total wait for a rate limit of one call. */
  readonly refusedMs: number;
  /** Least time of one try: the last one begins when its limit is over. */
  readonly minTryMs: number;
}

export const defaultPatience: PatienceLimits = {
  firstMs: 10_000,
  acceptedMs: 300_000,
  refusedMs: 120_000,
  minTryMs: 1_000,
};

/** The service did not answer for as long as the command waits for it. */
export class ServiceAway extends Error {}

/** Silence of the service as one call hears it. */
export type Silence = ReturnType<ServicePatience['start']>;

const delays = { firstMs: 100, maxMs: 3_000, hasJitter: true };

/** Patience of one command: all of its calls share the limits, and each counts its own silence. */
export type ServicePatience = ReturnType<typeof makePatience>;

export function makePatience(url: string, limits: PatienceLimits = defaultPatience) {
  let isAccepted = false;
  const silenceMs = () => (isAccepted ? limits.acceptedMs : limits.firstMs);
  return {
    limits,
    /** Longest silence now. */
    silenceMs,
    /** A job was accepted: from now on the longer limit holds. */
    accept: () => {
      isAccepted = true;
    },
    /** Begins the silence of one call. */
    start: () => {
      let since = performance.now();
      let failures = 0;
      const leftMs = () => since + silenceMs() - performance.now();
      return {
        /** Milliseconds until the call is given up. */
        leftMs,
        /** The service was heard. */
        end: () => {
          since = performance.now();
          failures = 0;
        },
        /** Waits before the next try, or throws `ServiceAway` when the time is over. */
        wait: async (cause: unknown, signal: AbortSignal, leastMs = 0) => {
          failures += 1;
          const left = leftMs();
          if (left <= 0) throw new ServiceAway(`No way to ${url}: ${wordsOf(cause)}`, { cause });
          await pause(Math.min(left, Math.max(leastMs, backoffMs(failures, delays))), undefined, { signal });
        },
      };
    },
  };
}

/** Returns the words of the innermost error: `fetch` hides its reason in the cause. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return 'it does not answer';
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause;
  if (inner instanceof Error) return wordsOf(inner);
  return error.message || codeOf(error) || error.name;
}
