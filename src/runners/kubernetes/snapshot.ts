import type { V1Condition, V1ContainerState, V1ContainerStateTerminated, V1Job, V1Pod } from '@kubernetes/client-node';
import { finalizer, jobNameLabel } from './labels.ts';
import type { CachedObject } from './object-cache.ts';

/** An object as the API server writes it: times are texts. */
export type KubeJson<T> = T extends Date ? string : T extends object ? { [K in keyof T]: KubeJson<T[K]> } : T;

interface ObjectSnapshot extends CachedObject {
  readonly attemptName: string;
  readonly createdAt: number;
  /** When its deletion was asked for. */
  readonly deletedAt: number | null;
  /** True while our finalizer keeps it. */
  readonly hasFinalizer: boolean;
}

export interface JobSnapshot extends ObjectSnapshot {
  readonly isSuspended: boolean;
  /** When the cluster began with it, or began again after Kueue had suspended it. */
  readonly startedAt: number | null;
  /** When its `activeDeadlineSeconds` are over. */
  readonly deadline: number | null;
  /** First condition that says that the Job has succeeded, or cannot any more. */
  readonly ending: { readonly reason: string } | null;
}

export interface ClusterReason {
  readonly reason: string;
  readonly message: string;
}

export interface PodSnapshot extends ObjectSnapshot {
  /** Of the Job that owns it; `null` when none does any more. */
  readonly jobUid: string | null;
  readonly phase: string;
  /** The kubelet's reason for the failure of the whole pod. */
  readonly reason: string;
  /** Reason of the condition `DisruptionTarget`: the cluster took the pod away. */
  readonly disruption: string | null;
  readonly scheduledAt: number | null;
  /** The scheduler's reason while it finds no node. */
  readonly unscheduled: ClusterReason | null;
  /** False while its node has not made its network and its volumes; before Kubernetes 1.36 also while it pulls the image. */
  readonly isPrepared: boolean;
  /** The kubelet's reason while the container waits. */
  readonly waiting: ClusterReason | null;
  /** When `Ready` became `False` while the container runs: the node stopped reporting. */
  readonly notReadySince: number | null;
  readonly exit: {
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    /** False for a container that never started. */
    readonly hasStarted: boolean;
  } | null;
}

/** Two conditions for each end: the first comes at once, the second perhaps never. */
const endingTypes = ['FailureTarget', 'Failed', 'SuccessCriteriaMet', 'Complete'];

/** Returns what the state of an attempt is judged by, of its Job. */
export function readJobSnapshot(raw: KubeJson<V1Job>): JobSnapshot {
  const conditions = raw.status?.conditions ?? [];
  const ending = endingTypes.map((type) => findTrue(conditions, type)).find((found) => found !== undefined);
  return {
    ...readMetadata(raw, raw.metadata?.name ?? ''),
    isSuspended: findTrue(conditions, 'Suspended') !== undefined,
    startedAt: readTime(raw.status?.startTime),
    deadline: readDeadline(raw),
    ending: ending ? { reason: ending.reason ?? '' } : null,
  };
}

/** Returns what the state of an attempt is judged by, of its pod. */
export function readPodSnapshot(raw: KubeJson<V1Pod>): PodSnapshot {
  const { status } = raw;
  // Anybody who may change pods may take the label away.
  const owner = raw.metadata?.ownerReferences?.find(({ kind }) => kind === 'Job');
  const conditions = status?.conditions ?? [];
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  const ready = conditions.find(({ type }) => type === 'Ready');
  const state: KubeJson<V1ContainerState> = status?.containerStatuses?.[0]?.state ?? {};
  const { waiting, running, terminated } = state;
  return {
    ...readMetadata(raw, raw.metadata?.labels?.[jobNameLabel] ?? owner?.name ?? ''),
    jobUid: owner?.uid ?? null,
    phase: status?.phase ?? 'Pending',
    reason: status?.reason ?? '',
    disruption: findTrue(conditions, 'DisruptionTarget')?.reason ?? null,
    scheduledAt: scheduled?.status === 'True' ? readTime(scheduled.lastTransitionTime) : null,
    unscheduled: scheduled?.status === 'False' ? reasonOf(scheduled) : null,
    isPrepared: !conditions.some(({ type, status }) => type === 'PodReadyToStartContainers' && status === 'False'),
    waiting: waiting ? reasonOf(waiting) : null,
    notReadySince: running && ready?.status === 'False' ? readTime(ready.lastTransitionTime) : null,
    exit: terminated ? exitOf(terminated) : null,
  };
}

function exitOf(terminated: KubeJson<V1ContainerStateTerminated>): PodSnapshot['exit'] {
  const { exitCode, reason = '', message = '', startedAt } = terminated;
  // The API server writes `null` for a time that never was.
  return { code: exitCode, reason, message, hasStarted: Boolean(startedAt) };
}

function readMetadata({ metadata }: KubeJson<V1Job> | KubeJson<V1Pod>, attemptName: string): ObjectSnapshot {
  const deletion = readTime(metadata?.deletionTimestamp);
  const graceSeconds = metadata?.deletionGracePeriodSeconds ?? 0;
  return {
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    version: metadata?.resourceVersion ?? '',
    attemptName,
    createdAt: readTime(metadata?.creationTimestamp) ?? 0,
    // The API server writes when the grace period ends.
    deletedAt: deletion === null ? null : deletion - graceSeconds * 1000,
    hasFinalizer: metadata?.finalizers?.includes(finalizer) ?? false,
  };
}

function reasonOf({ reason = '', message = '' }: Partial<ClusterReason>): ClusterReason {
  return { reason, message };
}

function readDeadline({ spec, status }: KubeJson<V1Job>): number | null {
  const started = readTime(status?.startTime);
  const seconds = spec?.activeDeadlineSeconds;
  return started === null || seconds === undefined ? null : started + seconds * 1000;
}

type TypedCondition = Pick<KubeJson<V1Condition>, 'type' | 'status'> & { readonly reason?: string };

function findTrue(conditions: readonly TypedCondition[], type: string): TypedCondition | undefined {
  return conditions.find((condition) => condition.type === type && condition.status === 'True');
}

export function readTime(text: string | undefined): number | null {
  return text === undefined || text === null ? null : Date.parse(text);
}
