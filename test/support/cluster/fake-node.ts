import { setTimeout as pause } from 'node:timers/promises';
import { type Kube, KubeError } from './kube.ts';
import { timestamp } from './pod.ts';

const capacity = { cpu: '1000', memory: '4000Gi', pods: '20000', 'ephemeral-storage': '100Ti' };
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const beatSeconds = 2;

interface NodeStatus {
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string }[] };
}

/**
 * Registers nodes and answers when they are ready; then says every 2 s of each that is heard that it is alive. The promise within
 * the answer ends after `signal`.
 */
export async function keepNodes(
  kube: Kube,
  names: readonly string[],
  isHeard: (node: string) => boolean,
  signal: AbortSignal,
): Promise<{ ended: Promise<void> }> {
  await ignoring(409, kube.ask('POST', '/api/v1/namespaces', { metadata: { name: 'kube-node-lease' } }));
  await Promise.all(names.map((name) => register(kube, name)));
  return { ended: beat(kube, names, isHeard, signal) };
}

async function register(kube: Kube, name: string): Promise<void> {
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' };
  await ignoring(409, kube.ask('POST', '/api/v1/nodes', { metadata: { name, labels } }));
  const lease = { holderIdentity: name, leaseDurationSeconds: 40, renewTime: preciseTimestamp() };
  await ignoring(409, kube.ask('POST', leases, { metadata: { name }, spec: lease }));
  await setReady(kube, name);
  // The controllers would take away the taint of a new node a moment later.
  await kube.ask('PATCH', `/api/v1/nodes/${name}`, { spec: { taints: null } });
}

async function setReady(kube: Kube, name: string): Promise<void> {
  const now = timestamp();
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  };
  await kube.ask('PATCH', `/api/v1/nodes/${name}/status`, {
    status: {
      capacity,
      allocatable: capacity,
      conditions: [ready],
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      nodeInfo: { kubeletVersion: 'v1.36.4' },
    },
  });
}

async function isReady(kube: Kube, name: string): Promise<boolean> {
  const { status } = await kube.ask<NodeStatus>('GET', `/api/v1/nodes/${name}`);
  return status.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

async function beat(
  kube: Kube,
  names: readonly string[],
  isHeard: (node: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await pause(beatSeconds * 1000, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const beats = names.map(async (name) => {
      if (!isHeard(name)) return;
      await kube.ask('PATCH', `${leases}/${name}`, { spec: { renewTime: preciseTimestamp() } });
      // The controllers mark a node that was not heard of as unknown, even when it was the API server that did not listen.
      if (!(await isReady(kube, name))) await setReady(kube, name);
    });
    // A request that fails is repeated with the next heartbeat.
    await Promise.allSettled(beats);
  }
}

async function ignoring(status: number, asked: Promise<unknown>): Promise<void> {
  await asked.catch((error) => {
    if (!(error instanceof KubeError && error.status === status)) throw error;
  });
}

function preciseTimestamp(): string {
  return new Date().toISOString().replace('Z', '000Z');
}
