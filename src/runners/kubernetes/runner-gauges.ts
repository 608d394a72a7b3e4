import type { Metrics } from '../../base/metrics.ts';
import type { Seen } from '../../model/next.ts';
import type { AttemptCleanup } from './cleanup.ts';
import type { ClusterState } from './cluster-state.ts';
import type { KubeClient } from './kube-client.ts';
import { waitOf, waits } from './pending-reason.ts';

export type RunnerMetrics = Pick<
  Metrics,
  'watch_age_seconds' | 'kube_wait_seconds' | 'cleanups_postponed' | 'oldest_leaving_seconds' | 'attempts_waiting'
>;

interface RunnerParts {
  readonly client: Pick<KubeClient, 'waitMs'>;
  readonly state: Pick<ClusterState, 'ageMs' | 'attemptNames' | 'leavingSince'>;
  readonly cleanup: Pick<AttemptCleanup, 'countPostponed'>;
  /** State of an attempt by the cached objects alone. */
  readonly seenOf: (attemptName: string) => Seen;
  /** Milliseconds since 1970, of the clock by which ages of Jobs and pods are judged. */
  readonly now: () => number;
}

export function setRunnerGauges(metrics: RunnerMetrics, { client, state, cleanup, seenOf, now }: RunnerParts): void {
  metrics.watch_age_seconds.set(state.ageMs() / 1000);
  metrics.kube_wait_seconds.set(client.waitMs() / 1000);
  metrics.cleanups_postponed.set(cleanup.countPostponed());
  const since = state.leavingSince();
  metrics.oldest_leaving_seconds.set(since === null ? 0 : Math.max(0, (now() - since) / 1000));
  const counts = new Map<string, number>(waits.map((wait) => [wait, 0]));
  for (const attemptName of state.attemptNames()) {
    const seen = seenOf(attemptName);
    if (seen.is === 'waiting') counts.set(waitOf(seen.reason), (counts.get(waitOf(seen.reason)) ?? 0) + 1);
  }
  for (const [wait, count] of counts) metrics.attempts_waiting.set({ wait }, count);
}
