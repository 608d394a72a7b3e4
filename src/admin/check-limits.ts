import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { findCgroup } from '../base/cgroup.ts';
import type { Config } from '../base/config.ts';
import { machineMemoryBytes } from '../base/machine-memory.ts';
import { inspectionsAtOnce } from '../base/resource-limits.ts';
import { nearestFolder } from './check-machine.ts';
import type { Finding } from './doctor-finding.ts';
import { checkCgroup, checkFileSum, checkMemorySum } from './machine-findings.ts';

/** Compares the limits of all workers and inspections together with the machine, where workers run on it. */
export async function checkLimits(
  config: Pick<Config, 'cgroup' | 'data' | 'maxFileBytes' | 'runner' | 'workers'>,
): Promise<Finding[]> {
  if (config.runner !== 'process') return [];
  const { bavail, bsize } = await statfs(await nearestFolder(config.data));
  const inspections = inspectionsAtOnce(availableParallelism(), machineMemoryBytes());
  return [
    checkCgroup(config.cgroup === 'off' ? 'TRAWL_CGROUP is off' : findCgroup()),
    checkMemorySum(config.workers, inspections, machineMemoryBytes()),
    checkFileSum(config.workers, inspections, config.maxFileBytes, bavail * bsize),
  ];
}
