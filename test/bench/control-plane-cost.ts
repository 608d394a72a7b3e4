import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '../support/cluster/cluster.ts';
import { countServedRequests } from '../support/cluster/request-counts.ts';
import { cpuMicros } from './load.ts';

/** The cost of some work for a control plane. */
export interface ControlPlaneCost {
  /** Processor time of all its parts. */
  readonly milliseconds: number;
  /** Requests about Jobs, pods and events, by anybody, without lists and watches. */
  readonly requests: number;
}

const quietMilliseconds = 1_000;

/** Does some work and waits until the control plane has done what follows from it: it writes its events late. */
export async function measureControlPlane<T>(
  cluster: Cluster,
  work: () => Promise<T>,
): Promise<ControlPlaneCost & { value: T }> {
  const usedBefore = cpuMilliseconds(cluster);
  const servedBefore = await countServedRequests(cluster);
  const value = await work();
  let served = await countServedRequests(cluster);
  for (let before = -1; before !== served; served = await countServedRequests(cluster)) {
    before = served;
    await pause(quietMilliseconds);
  }
  return { value, milliseconds: cpuMilliseconds(cluster) - usedBefore, requests: served - servedBefore };
}

function cpuMilliseconds({ parts }: Cluster): number {
  return Object.values(parts).reduce((sum, part) => sum + cpuMicros(part.pid()), 0) / 1000;
}
