import type { ClusterState } from './cluster-state.ts';
import { isTerminal } from './judge-attempt.ts';
import { apiPathsOf, type KubeClient } from './kube-client.ts';
import { finalizer } from './labels.ts';
import type { JobSnapshot, PodSnapshot } from './snapshot.ts';

/** Job and pods of an attempt whose end is recorded. */
export interface Leftovers {
  readonly job: JobSnapshot | null;
  readonly pods: readonly PodSnapshot[];
}

export interface AttemptCleanup {
  /** Removes the leftovers of an attempt; resolves when they are removed, or are to be removed later. */
  remove(attemptName: string, leftovers: Leftovers): Promise<void>;
  isPostponed(attemptName: string): boolean;
  countPostponed(): number;
  close(): void;
}

/** Removed objects that still exist after this time are seen again, and their attempt is looked at again. */
const hiddenMs = 60_000;

/** Returns a cleanup that removes leftovers at once. */
export function makeCleanup(client: KubeClient, namespace: string, state: ClusterState): AttemptCleanup {
  return {
    async remove(_, leftovers) {
      // The changes that follow are of our own making.
      state.hide(objectsOf(leftovers), hiddenMs);
      try {
        await removeLeftovers(client, namespace, leftovers);
      } catch (error) {
        state.show(objectsOf(leftovers));
        throw error;
      }
    },
    isPostponed: () => false,
    countPostponed: () => 0,
    close: () => {},
  };
}

export function objectsOf({ job, pods }: Leftovers): (JobSnapshot | PodSnapshot)[] {
  return [...pods, ...(job ? [job] : [])];
}

/**
 * Removes our finalizer from the pods and the Job, and deletes the Job. The finalizer of the Job controller stays on the pod: a
 * pod that it has not counted is replaced, even after its Job was deleted, as long as that controller has not seen the deletion.
 */
async function removeLeftovers(client: KubeClient, namespace: string, { job, pods }: Leftovers): Promise<void> {
  const paths = apiPathsOf(namespace);
  const pathOf = ({ name }: JobSnapshot) => `${paths.jobs}/${name}`;
  const removing = pods.map((pod) => removePod(client, `${paths.pods}/${pod.name}`, pod));
  if (job?.hasFinalizer) removing.push(removeFinalizer(client, pathOf(job), job.uid));
  await Promise.all(removing);
  if (job?.deletedAt === null) await deleteJob(client, pathOf(job), job);
}

async function deleteJob(client: KubeClient, path: string, { uid }: JobSnapshot): Promise<void> {
  // In the body: beside a body the API server ignores the query, and without a policy the pods would stay.
  const body = { propagationPolicy: 'Background', preconditions: { uid } };
  await client.change('DELETE', path, body);
}

/**
 * A pod that has not ended, or waits for its kubelet, is deleted without grace before our finalizer goes: after the death of a
 * node nobody else would delete it.
 */
async function removePod(client: KubeClient, path: string, pod: PodSnapshot): Promise<void> {
  if (!isTerminal(pod) || pod.deletedAt !== null) {
    const body = { gracePeriodSeconds: 0, preconditions: { uid: pod.uid } };
    await client.change('DELETE', path, body);
  }
  if (pod.hasFinalizer) await removeFinalizer(client, path, pod.uid);
}

function removeFinalizer(client: KubeClient, path: string, uid: string): Promise<void> {
  // With the uid the API server refuses to change a later object of the same name.
  const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [finalizer] } };
  return client.change('PATCH', path, body);
}
