import type { V1Job, V1Pod } from '@kubernetes/client-node';
import { finalizer, jobNameLabel, workerLabels } from '../../src/runners/kubernetes/labels.ts';
import type { KubeJson } from '../../src/runners/kubernetes/snapshot.ts';

export const attemptName = '11111111-2222-4333-8444-555555555555-1';
export const begun = Date.parse('2026-11-21T10:00:00Z');
const time = '2026-11-21T10:00:00Z';

/** A Job as the API server shows it: made a moment ago, our finalizer on it. */
export function aRawJob(
  given: { metadata?: object; conditions?: readonly [string, string][]; activeDeadlineSeconds?: number } = {},
): KubeJson<V1Job> {
  const conditions = (given.conditions ?? []).map(([type, reason]) => ({ type, reason, status: 'True' }));
  return {
    metadata: {
      ...{ name: attemptName, uid: 'job-1', resourceVersion: '10', creationTimestamp: time, labels: workerLabels },
      finalizers: [finalizer],
      ...given.metadata,
    },
    ...(given.activeDeadlineSeconds && {
      spec: { activeDeadlineSeconds: given.activeDeadlineSeconds, template: {} },
    }),
    status: { startTime: time, conditions },
  };
}

/** The pod of that Job, scheduled and running, our finalizer on it. */
export function aRawPod(given: { metadata?: object; status?: object } = {}): KubeJson<V1Pod> {
  return {
    metadata: {
      ...{ name: `${attemptName}-abcde`, uid: 'pod-1', resourceVersion: '11', creationTimestamp: time },
      labels: { ...workerLabels, [jobNameLabel]: attemptName },
      finalizers: [finalizer, 'batch.kubernetes.io/job-tracking'],
      ...given.metadata,
    },
    status: { phase: 'Running', conditions: [scheduled], ...given.status },
  };
}

export const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: time };
export const unschedulable = {
  phase: 'Pending',
  conditions: [{ ...scheduled, status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available' }],
};
/** As the cluster writes it when the node of a running pod is away. */
export const unheard = {
  conditions: [scheduled, { ...scheduled, type: 'Ready', status: 'False' }],
  containerStatuses: [{ state: { running: { startedAt: time } } }],
};
/** The metadata of an object that was deleted at `begun` with a minute of grace. */
export const deleted = { deletionTimestamp: '2026-11-21T10:01:00Z', deletionGracePeriodSeconds: 60 };
/** The same, ten seconds after that. */
export const deletedLater = { ...deleted, deletionTimestamp: '2026-11-21T10:01:10Z' };

export function terminated(exitCode: number, reason: string, message = '') {
  return { containerStatuses: [{ state: { terminated: { exitCode, reason, message, startedAt: time } } }] };
}

/** As the kubelet writes it of a container that it had not started when the pod ended. */
export function unstarted() {
  const terminated = { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'could not be located' };
  return { containerStatuses: [{ state: { terminated: { ...terminated, startedAt: null, finishedAt: null } } }] };
}

export function waitingFor(reason: string, message = '') {
  return { phase: 'Pending', containerStatuses: [{ state: { waiting: { reason, message } } }] };
}

/** As a kubelet writes it that cannot make the network of a pod. */
export function unprepared() {
  const prepared = { ...scheduled, type: 'PodReadyToStartContainers', status: 'False' };
  return { ...waitingFor('ContainerCreating'), conditions: [scheduled, prepared] };
}

export function disrupted(reason: string) {
  return { conditions: [scheduled, { type: 'DisruptionTarget', status: 'True', reason }] };
}
