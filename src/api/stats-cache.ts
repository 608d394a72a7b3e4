import type { Endpoint } from '../model/job.ts';
import type { MinuteBucket } from '../model/stats.ts';
import { readMinutes } from '../store/log/read-minutes.ts';
import type { RecordStore } from '../store/script.ts';

const maxAgeMs = 2000;

export type StatsCache = ReturnType<typeof cacheStats>;

/** The platform's statistics, read again from Redis when they are two seconds old. */
export function cacheStats(store: RecordStore) {
  const kept = new Map<Endpoint, { at: number; minutes: Promise<readonly MinuteBucket[]>; seconds: number | null }>();
  const refresh = (endpoint: Endpoint) => {
    const before = kept.get(endpoint);
    if (before && performance.now() - before.at < maxAgeMs) return before;
    const fresh = { at: performance.now(), minutes: readMinutes(store, endpoint), seconds: before?.seconds ?? null };
    kept.set(endpoint, fresh);
    fresh.minutes.then(
      (minutes) => {
        fresh.seconds = averageOf(minutes, store.clock.now());
      },
      // The caller of `read` gets the error; an estimate does without.
      () => kept.delete(endpoint),
    );
    return fresh;
  };
  return {
    read: (endpoint: Endpoint) => refresh(endpoint).minutes,
    /** Returns how long the last hour's jobs ran on average, as far as it was read already; `null` without one. */
    averageSeconds: (endpoint: Endpoint) => refresh(endpoint).seconds,
  };
}

function averageOf(minutes: readonly MinuteBucket[], now: number): number | null {
  const last = minutes.filter(({ minute }) => minute > now / 60_000 - 60);
  const runs = last.reduce((sum, one) => sum + one.runs, 0);
  return runs === 0 ? null : last.reduce((sum, one) => sum + one.runMs, 0) / runs / 1000;
}
