import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import { messageOf } from '../../base/errors.ts';
import { type NetworkTrial, readNetworkTrial } from '../../model/network-trial.ts';
import { makeTrialJob, type WorkerShape } from './job-manifest.ts';
import { apiPathsOf, type KubeClient } from './kube-client.ts';
import { jobNameLabel, trialJobId } from './labels.ts';
import { type KubeJson, type PodSnapshot, readPodSnapshot } from './snapshot.ts';

interface NetworkTrialOptions {
  readonly client: KubeClient;
  readonly shape: WorkerShape;
  /** Address that network policies close to workers, as `host:port`. */
  readonly closed: string;
  /** Longest time until the pod has ended: its node may have to pull the image first. */
  readonly maxSeconds: number;
}

const pollMs = 1_000;

/** Runs a pod of this shape that tries what workers reach, removes it, and returns what it found, or why it found nothing. */
export async function runNetworkTrial(options: NetworkTrialOptions): Promise<NetworkTrial | string> {
  const { client, shape, closed, maxSeconds } = options;
  const { jobs } = apiPathsOf(shape.namespace);
  const name = `${trialJobId}-${randomBytes(4).toString('hex')}`;
  try {
    await client.ask('POST', jobs, { body: makeTrialJob(name, closed, shape, maxSeconds) });
  } catch (error) {
    return `the cluster refuses it: ${messageOf(error)}`;
  }
  try {
    return await waitForEnd(options, name);
  } finally {
    await client.change('DELETE', `${jobs}/${name}`, { propagationPolicy: 'Background' });
  }
}

async function waitForEnd({ client, shape, maxSeconds }: NetworkTrialOptions, name: string) {
  const { pods } = apiPathsOf(shape.namespace);
  const query = { labelSelector: `${jobNameLabel}=${name}` };
  const end = performance.now() + maxSeconds * 1000;
  let pod: PodSnapshot | undefined;
  while (performance.now() < end) {
    const { items } = await client.ask<{ readonly items: readonly KubeJson<V1Pod>[] }>('GET', pods, { query });
    [pod] = items.map(readPodSnapshot);
    const exit = pod?.exit;
    if (exit) return readNetworkTrial(exit.message) ?? `it ended with ${exit.code} (${exit.reason}) ${exit.message}`;
    await pause(pollMs);
  }
  return `it has not run within ${maxSeconds} s (${explain(pod)})`;
}

function explain(pod: PodSnapshot | undefined): string {
  if (pod === undefined) return 'its Job has no pod';
  const { reason, message } = pod.waiting ?? pod.unscheduled ?? { reason: pod.phase, message: '' };
  return [reason, message].filter(Boolean).join(': ');
}
