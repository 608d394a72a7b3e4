import type { Outcome } from '../../model/outcome.ts';
import type { Shape } from './job-manifest.ts';
import type { LivePod } from './snapshot.ts';

/** Why a pod does not run yet; with an outcome it never will, and a person must look at it. */
export interface Wait {
  /** A sentence for the caller; `null` when there is nothing out of the ordinary. */
  readonly reason: string | null;
  readonly outcome: Outcome | null;
}

/** What keeps a worker from starting, and for which part of the operator's patience that may pass by itself. */
const hindrances: Readonly<Record<string, { readonly part: number; readonly reason: string }>> = {
  ErrImagePull: { part: 1, reason: 'The image of the worker is being fetched' },
  ImagePullBackOff: { part: 1, reason: 'The image of the worker is being fetched' },
  RegistryUnavailable: { part: 1, reason: 'The image of the worker is being fetched' },
  ErrImageNeverPull: { part: 0, reason: 'The image of the worker is missing' },
  InvalidImageName: { part: 0, reason: 'The image of the worker is missing' },
  CreateContainerConfigError: { part: 1 / 3, reason: 'The worker cannot be started yet' },
  CreateContainerError: { part: 1, reason: 'The worker cannot be started yet' },
  RunContainerError: { part: 1, reason: 'The worker cannot be started yet' },
};

/** Room that nobody has made by then is not made by waiting. */
const roomMilliseconds = 900_000;
const nothing: Wait = { reason: null, outcome: null };
const broken: Outcome = { is: 'failed', code: 'worker_failed' };
const crowded: Outcome = { is: 'failed', code: 'queue_timeout', text: 'No node of the cluster had room for the job' };
/** A registry that has had enough for now passes by itself. */
const throttled = /\b429\b|too ?many ?requests/i;

/** Says why a pod that has not run is still waiting. What a queue of the cluster has admitted waits for as long as it lets it. */
export function explainPod(
  pod: LivePod,
  { queue, startSeconds }: Pick<Shape, 'queue' | 'startSeconds'>,
  now: number,
): Wait {
  const { unscheduled, scheduledAt, createdAt, waits } = pod;
  if (unscheduled?.reason === 'SchedulingGated') return { ...nothing, reason: 'The cluster has not admitted it yet' };
  if (unscheduled !== null) {
    const isOver = queue === null && now - createdAt >= roomMilliseconds;
    return { reason: 'No node of the cluster has room for it', outcome: isOver ? crowded : null };
  }
  const known = hindrances[waits?.reason ?? ''];
  if (!waits || !known) return nothing;
  const isOver = now - (scheduledAt ?? createdAt) >= known.part * startSeconds * 1000 && !throttled.test(waits.message);
  return { reason: known.reason, outcome: isOver ? broken : null };
}

/** Says why a Job has no pod, by what the cluster said when it could not make one. */
export function explainJob(isSuspended: boolean, said: readonly string[]): Wait {
  if (isSuspended) return { ...nothing, reason: 'The cluster has not admitted it yet' };
  const last = said.at(-1);
  if (last === undefined) return nothing;
  if (/exceeded quota/.test(last)) return { ...nothing, reason: 'The quota of the cluster is used up' };
  const isRefused = /\bforbidden\b|\bdenied\b|violates|\binvalid\b/i.test(last);
  return { reason: 'The cluster makes no pod for it', outcome: isRefused ? broken : null };
}
