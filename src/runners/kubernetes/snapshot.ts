import type { V1Condition, V1ContainerState, V1Job, V1Pod } from '@kubernetes/client-node';

/** As the API server writes it: every time is a text. */
export type Raw<T> = T extends Date ? string : T extends object ? { [K in keyof T]: Raw<T[K]> } : T;

/** Keeps a Job or pod, whoever deletes it, until its end is in the record. */
export const finalizer = 'trawl/unsettled';

/** Marks the Jobs and pods that are ours. */
export const ours = { 'app.kubernetes.io/managed-by': 'trawl', 'app.kubernetes.io/component': 'worker' } as const;
export const ownSelector = Object.entries(ours)
  .map(([name, value]) => `${name}=${value}`)
  .join(',');

/** The label by which pods name their Job. */
export const jobLabel = 'batch.kubernetes.io/job-name';

/** Who owns which field is nearly half of what is told of an object, and its spec most of the rest. */
const owners = ['"managedFields":[', ']},"spec":{'] as const;
export const unreadOfJob = [owners, ['"template":{', '},"ttlSecondsAfterFinished":']] as const;
export const unreadOfPod = [owners, ['"spec":{', '},"status":{']] as const;

interface Live {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  /** Name of the attempt that it belongs to. */
  readonly attempt: string;
  readonly createdAt: number;
  /** Since when it is to be deleted. */
  readonly deletedAt: number | null;
  /** Whether our finalizer keeps it. */
  readonly isHeld: boolean;
}

/** What is kept of a Job. */
export interface LiveJob extends Live {
  readonly kind: 'job';
  readonly isSuspended: boolean;
  /** When its time is up. */
  readonly deadline: number | null;
  /** Why it is over, as soon as it cannot succeed any more or has. */
  readonly over: { readonly type: string; readonly reason: string } | null;
}

/** Why something is as it is, in the words of the cluster. */
interface Cause {
  readonly reason: string;
  readonly message: string;
}

/** What is kept of a pod. */
export interface LivePod extends Live {
  readonly kind: 'pod';
  readonly phase: string;
  /** Why the pod as a whole failed, in the kubelet's word. */
  readonly reason: string;
  /** Why the cluster took it away, when it did. */
  readonly disruption: string | null;
  readonly scheduledAt: number | null;
  /** What the scheduler said while it found no node. */
  readonly unscheduled: Cause | null;
  readonly waits: Cause | null;
  /** Since when its worker runs and yet is not ready: so the cluster says that nothing is heard of its node. */
  readonly unheardSince: number | null;
  readonly exit: { readonly code: number; readonly reason: string; readonly message: string } | null;
}

/** Both conditions of each end: the first comes at once, the second may never come. */
const overTypes = ['FailureTarget', 'Failed', 'SuccessCriteriaMet', 'Complete'];

/** Keeps of a Job what its end is judged by. */
export function slimJob(raw: Raw<V1Job>): LiveJob {
  const conditions = raw.status?.conditions ?? [];
  const over = overTypes.map((type) => findTrue(conditions, type)).find((found) => found !== undefined);
  return {
    kind: 'job',
    ...slim(raw, raw.metadata?.name ?? ''),
    isSuspended: findTrue(conditions, 'Suspended') !== undefined,
    deadline: readDeadline(raw),
    over: over ? { type: over.type, reason: over.reason ?? '' } : null,
  };
}

/** Keeps of a pod what its end is judged by. */
export function slimPod(raw: Raw<V1Pod>): LivePod {
  const { status } = raw;
  const conditions = status?.conditions ?? [];
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  const ready = conditions.find(({ type }) => type === 'Ready');
  const state: Raw<V1ContainerState> = status?.containerStatuses?.[0]?.state ?? {};
  const { waiting, running, terminated } = state;
  return {
    kind: 'pod',
    ...slim(raw, raw.metadata?.labels?.[jobLabel] ?? ''),
    phase: status?.phase ?? 'Pending',
    reason: status?.reason ?? '',
    disruption: findTrue(conditions, 'DisruptionTarget')?.reason ?? null,
    scheduledAt: scheduled?.status === 'True' ? readTime(scheduled.lastTransitionTime) : null,
    unscheduled: scheduled?.status === 'False' ? causeOf(scheduled) : null,
    waits: waiting ? causeOf(waiting) : null,
    unheardSince: running && ready?.status === 'False' ? readTime(ready.lastTransitionTime) : null,
    exit: terminated
      ? { code: terminated.exitCode, reason: terminated.reason ?? '', message: terminated.message ?? '' }
      : null,
  };
}

function slim({ metadata }: Raw<V1Job> | Raw<V1Pod>, attempt: string): Live {
  const deletion = readTime(metadata?.deletionTimestamp);
  const graceSeconds = metadata?.deletionGracePeriodSeconds ?? 0;
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    version: metadata?.resourceVersion ?? '',
    attempt,
    createdAt: readTime(metadata?.creationTimestamp) ?? 0,
    // The server writes when the patience with it ends.
    deletedAt: deletion === null ? null : deletion - graceSeconds * 1000,
    isHeld: metadata?.finalizers?.includes(finalizer) ?? false,
  };
}

function causeOf({ reason = '', message = '' }: Partial<Cause>): Cause {
  return { reason, message };
}

function readDeadline({ spec, status }: Raw<V1Job>): number | null {
  const started = readTime(status?.startTime);
  const seconds = spec?.activeDeadlineSeconds;
  return started === null || seconds === undefined ? null : started + seconds * 1000;
}

type Condition = Pick<Raw<V1Condition>, 'type' | 'status'> & { readonly reason?: string };

function findTrue(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type && condition.status === 'True');
}

function readTime(text: string | undefined): number | null {
  return text === undefined || text === null ? null : Date.parse(text);
}
