import type { Outcome } from '../../model/outcome.ts';
import type { WorkerShape } from './job-manifest.ts';
import type { ClusterReason, JobSnapshot, PodSnapshot } from './snapshot.ts';

/** Reason why a pod does not run yet; with an outcome it never will, and the operator is told. */
interface PendingReason {
  /** A sentence for the caller; `null` for an ordinary start. */
  readonly reason: WaitSentence | null;
  readonly outcome: Outcome | null;
}

/** Sentence of a Job that has no pod, such as for the quota of its namespace. */
export const noPod = 'The cluster makes no pod for it';

/** Sentence of a Job or a pod that a quota of its namespace forbids. */
export const quotaUsedUp = 'The quota of the cluster is used up';

/** Sentences of waits with their words in metrics. */
const waitWords = {
  [noPod]: 'pod',
  [quotaUsedUp]: 'pod',
  'The cluster has not admitted it yet': 'admission',
  'No node of the cluster has room for it': 'room',
  'The image of the worker is being fetched': 'image',
  'The image of the worker is missing': 'image',
  'The worker cannot be started yet': 'container',
} as const;
type WaitSentence = keyof typeof waitWords;

export const waits = ['starting', ...new Set(Object.values(waitWords))] as const;

export function waitOf(reason: string | null): (typeof waits)[number] {
  return (waitWords as Readonly<Record<string, (typeof waits)[number]>>)[reason ?? ''] ?? 'starting';
}

/** Kubelet reasons that keep a worker from starting, and for which part of `startSeconds` each may last. */
const startFaults: Readonly<Record<string, { readonly part: number; readonly reason: WaitSentence }>> = {
  ErrImagePull: { part: 1, reason: 'The image of the worker is being fetched' },
  ImagePullBackOff: { part: 1, reason: 'The image of the worker is being fetched' },
  RegistryUnavailable: { part: 1, reason: 'The image of the worker is being fetched' },
  ErrImageNeverPull: { part: 0, reason: 'The image of the worker is missing' },
  InvalidImageName: { part: 0, reason: 'The image of the worker is missing' },
  CreateContainerConfigError: { part: 1 / 3, reason: 'The worker cannot be started yet' },
  CreateContainerError: { part: 1, reason: 'The worker cannot be started yet' },
  RunContainerError: { part: 1, reason: 'The worker cannot be started yet' },
};

/** A pod that no node had room for by then ends its attempt. */
const unschedulableMs = 900_000;
/** The kubelet tries for ever to make the network and the volumes of a pod, on its node alone. */
const maxPreparationMs = 900_000;
/** Reasons of events about that. A kubelet that goes on to the image says so in a later event. */
const preparationFaults: ReadonlySet<string> = new Set([
  'FailedCreatePodSandBox',
  'FailedPodSandBoxStatus',
  'NetworkNotReady',
  'FailedAttachVolume',
  'FailedMapVolume',
  'FailedMount',
]);
const unprepared: Outcome = { is: 'interrupted', reason: 'its node does not start it' };
const nothing: PendingReason = { reason: null, outcome: null };
const broken: Outcome = { is: 'failed', code: 'worker_failed' };
const noRoom: Outcome = { is: 'failed', code: 'queue_timeout', text: 'No node of the cluster had room for the job' };
/** A registry that limits the rate of pulls: waiting helps. */
const throttled = /\b429\b|too ?many ?requests/i;

/** Returns why its node cannot make the network or the volumes of a pod, by the events of the pod, oldest first. */
export function findPreparationFault(events: readonly ClusterReason[]): string | null {
  const last = events.at(-1);
  return last && preparationFaults.has(last.reason) ? `${last.reason}: ${last.message}` : null;
}

/**
 * Returns the reason why a pod has not run yet, by its state and what its node says. With a Kueue queue a pod may wait for a node as long
 * as the job may.
 */
export function explainPendingPod(
  pod: PodSnapshot,
  faults: readonly string[],
  { queue, startSeconds }: Pick<WorkerShape, 'queue' | 'startSeconds'>,
  now: number,
): PendingReason {
  const { unscheduled, scheduledAt, createdAt, waiting } = pod;
  if (unscheduled?.reason === 'SchedulingGated') return { ...nothing, reason: 'The cluster has not admitted it yet' };
  if (unscheduled !== null) {
    const isOver = queue === null && now - createdAt >= unschedulableMs;
    return { reason: 'No node of the cluster has room for it', outcome: isOver ? noRoom : null };
  }
  const scheduledMs = now - (scheduledAt ?? createdAt);
  if (faults.length > 0) {
    return { reason: 'The worker cannot be started yet', outcome: scheduledMs >= maxPreparationMs ? unprepared : null };
  }
  const known = startFaults[waiting?.reason ?? ''];
  if (!waiting || !known) return nothing;
  const isOver = scheduledMs >= known.part * startSeconds * 1000 && !throttled.test(waiting.message);
  return { reason: known.reason, outcome: isOver ? broken : null };
}

/** True for the words with which the cluster refuses an object for a quota. */
export function exceedsQuota(message: string): boolean {
  return /exceeded quota/.test(message);
}

/** Refusal by our own admission policy: after an upgrade it refuses the pod of a Job with the image from before for ever. */
const refusedByUs = /denied request: trawl: /;

/**
 * Returns the reason why a Job has no pod, by the messages of the cluster about it, oldest first, and the time for which it may have been
 * refused: since it began, or since a quota last kept it waiting. Kubernetes tries a refused pod again at
 * least once a minute, so a ServiceAccount or a PriorityClass that is replaced meanwhile costs no attempt.
 */
export function explainMissingPod(
  job: JobSnapshot | null,
  faults: readonly string[],
  { startSeconds }: Pick<WorkerShape, 'startSeconds'>,
  refusedMs: number,
): PendingReason {
  if (job?.isSuspended) return { ...nothing, reason: 'The cluster has not admitted it yet' };
  const last = faults.at(-1);
  if (last === undefined) return nothing;
  if (exceedsQuota(last)) return { ...nothing, reason: quotaUsedUp };
  // A webhook that cannot be asked has judged nothing, whatever words the failure has.
  const isRefused = !/failed calling webhook/.test(last) && /\bforbidden\b|\bdenied\b|violates|\binvalid\b/i.test(last);
  const isOver = refusedByUs.test(last) || refusedMs >= startSeconds * 1000;
  return { reason: noPod, outcome: isRefused && isOver ? broken : null };
}
