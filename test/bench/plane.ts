import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from '../support/cluster/cluster.ts';
import { countServed } from '../support/cluster/served.ts';
import { cpuMicros } from './load.ts';

/** What some work cost a control plane. */
export interface PlaneCost {
  /** Processor time of all its parts. */
  readonly milliseconds: number;
  /** Requests about Jobs, pods and events, by anybody, without lists and watches. */
  readonly requests: number;
}

const quietMilliseconds = 1_000;

/** Does some work and waits until the control plane has done what follows from it: it writes its events late. */
export async function costOf<T>(cluster: Cluster, work: () => Promise<T>): Promise<PlaneCost & { value: T }> {
  const usedBefore = planeMilliseconds(cluster);
  const servedBefore = await countServed(cluster);
  const value = await work();
  let served = await countServed(cluster);
  for (let before = -1; before !== served; served = await countServed(cluster)) {
    before = served;
    await pause(quietMilliseconds);
  }
  return { value, milliseconds: planeMilliseconds(cluster) - usedBefore, requests: served - servedBefore };
}

function planeMilliseconds({ parts }: Cluster): number {
  return Object.values(parts).reduce((sum, part) => sum + cpuMicros(part.pid()), 0) / 1000;
}
