import { pathsOf } from './cluster-state.ts';
import { isTerminal } from './judge-attempt.ts';
import { type Client, KubeError } from './kube-client.ts';
import { finalizer, type LiveJob, type LivePod } from './snapshot.ts';

/** What is left of an attempt. */
export interface Left {
  readonly job: LiveJob | null;
  readonly pods: readonly LivePod[];
}

/**
 * Lets an attempt go whose end is in the record. The finalizer of the controller of Jobs stays on the pod: a pod that it has
 * not counted is replaced, even after its Job was deleted, as long as that controller has not seen the deletion.
 */
export async function release(client: Client, namespace: string, { job, pods }: Left): Promise<void> {
  const paths = pathsOf(namespace);
  const pathOf = ({ name }: LiveJob) => `${paths.jobs}/${name}`;
  const releasing = pods.map((pod) => releasePod(client, `${paths.pods}/${pod.name}`, pod));
  if (job?.isHeld) releasing.push(letGo(client, pathOf(job), job.uid));
  await Promise.all(releasing);
  if (job?.deletedAt === null) await deleteJob(client, pathOf(job), job);
}

async function deleteJob(client: Client, path: string, { uid }: LiveJob): Promise<void> {
  // In the body: what a query says is not heard beside one, and what holds without it leaves the pods alone.
  const body = { propagationPolicy: 'Background', preconditions: { uid } };
  await unlessGone(client.change('DELETE', path, body));
}

/**
 * One that has not ended, or waits for a kubelet to end it, is deleted without grace before our finalizer goes: after a dead
 * node nobody else would do it.
 */
async function releasePod(client: Client, path: string, pod: LivePod): Promise<void> {
  if (!isTerminal(pod) || pod.deletedAt !== null) {
    const body = { gracePeriodSeconds: 0, preconditions: { uid: pod.uid } };
    await unlessGone(client.change('DELETE', path, body));
  }
  if (pod.isHeld) await letGo(client, path, pod.uid);
}

function letGo(client: Client, path: string, uid: string): Promise<void> {
  // With the uid the server refuses to change a later object of the same name.
  const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [finalizer] } };
  return unlessGone(client.change('PATCH', path, body));
}

/** It has gone already, or another one has its name now. */
async function unlessGone(change: Promise<unknown>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof KubeError) || (error.status !== 404 && error.status !== 409)) throw error;
  }
}
