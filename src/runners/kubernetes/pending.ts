import type { Outcome } from '../../model/outcome.ts';
import type { LivePod } from './slim.ts';

/** Why a pod does not run yet; with an outcome it never will, and a person must look at it. */
export interface Wait {
  /** A sentence for the caller; `null` when there is nothing out of the ordinary. */
  readonly reason: string | null;
  readonly outcome: Outcome | null;
}

/** How long a cause may last until it does not pass by itself, in seconds. */
const patience: Readonly<Record<string, { readonly seconds: number; readonly reason: string }>> = {
  ErrImagePull: { seconds: 180, reason: 'The image of the worker is being fetched' },
  ImagePullBackOff: { seconds: 180, reason: 'The image of the worker is being fetched' },
  RegistryUnavailable: { seconds: 180, reason: 'The image of the worker is being fetched' },
  ErrImageNeverPull: { seconds: 0, reason: 'The image of the worker is missing' },
  InvalidImageName: { seconds: 0, reason: 'The image of the worker is missing' },
  CreateContainerConfigError: { seconds: 60, reason: 'The worker cannot be started yet' },
  CreateContainerError: { seconds: 180, reason: 'The worker cannot be started yet' },
  RunContainerError: { seconds: 180, reason: 'The worker cannot be started yet' },
};

const nothing: Wait = { reason: null, outcome: null };
const broken: Outcome = { is: 'failed', code: 'worker_failed' };
/** A registry that has had enough for now passes by itself. */
const throttled = /\b429\b|too ?many ?requests/i;

/** Says why a pod that has not run is still waiting. */
export function explainPod({ unscheduled, scheduledAt, createdAt, waits }: LivePod, now: number): Wait {
  if (unscheduled === 'SchedulingGated') return { ...nothing, reason: 'The cluster has not admitted it yet' };
  if (unscheduled !== null) return { ...nothing, reason: 'No node of the cluster has room for it' };
  const known = patience[waits?.reason ?? ''];
  if (!waits || !known) return nothing;
  const isOver = now - (scheduledAt ?? createdAt) >= known.seconds * 1000 && !throttled.test(waits.message);
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
