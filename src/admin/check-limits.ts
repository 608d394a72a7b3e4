import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { type CgroupPlace, findCgroup } from '../base/cgroup.ts';
import type { Config } from '../base/config.ts';
import { gibibytes, machineMemoryBytes } from '../base/machine-memory.ts';
import {
  attemptMemoryBytes,
  copiesOfFile,
  inspectionFileBytes,
  inspectionMemoryBytes,
  inspectionsPerProcessor,
} from '../base/resource-limits.ts';
import { nearestFolder } from './check-machine.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

/** Compares the limits of all workers and inspections together with the machine, where workers run on it. */
export async function checkLimits(
  config: Pick<Config, 'cgroup' | 'data' | 'maxFileBytes' | 'runner' | 'workers'>,
): Promise<Finding[]> {
  if (config.runner !== 'process') return [];
  const { bavail, bsize } = await statfs(await nearestFolder(config.data));
  const inspections = inspectionsPerProcessor * availableParallelism();
  return [
    checkCgroup(config.cgroup === 'off' ? 'TRAWL_CGROUP is off' : findCgroup()),
    checkMemorySum(config.workers, inspections, machineMemoryBytes()),
    checkFileSum(config.workers, inspections, config.maxFileBytes, bavail * bsize),
  ];
}

export function checkCgroup(found: CgroupPlace | string): Finding {
  const about = 'cgroup';
  if (typeof found !== 'string') {
    const text = `The kernel limits the memory of each attempt, in a cgroup of version ${found.version} below ${found.folder}.`;
    return { level: 'ok', about, text };
  }
  const start = 'systemd-run --user --scope -p Delegate=yes ./trawl up';
  const text = `Memory of workers is only measured, four times a second (${found}); with systemd, "${start}" lets the kernel limit it.`;
  return { level: 'note', about, text };
}

export function checkMemorySum(workers: number, inspections: number, machineBytes: number): Finding {
  const sum = workers * attemptMemoryBytes + inspections * inspectionMemoryBytes;
  const text = `${workers} workers and ${inspections} inspections may use ${gibibytes(sum)} of memory, and there are ${gibibytes(machineBytes)}`;
  const well = sum <= machineBytes;
  return findingOf(well, 'memory limits', well ? `${text}.` : `${text}: lower TRAWL_WORKERS or add memory.`, 'note');
}

export function checkFileSum(workers: number, inspections: number, maxFileBytes: number, freeBytes: number): Finding {
  const sum = workers * copiesOfFile * maxFileBytes + inspections * inspectionFileBytes;
  const text = `${workers} workers and ${inspections} inspections may fill ${gibibytes(sum)} of disk, and ${gibibytes(freeBytes)} are free`;
  const well = sum <= freeBytes;
  const advice = 'lower TRAWL_MAX_FILE_BYTES or TRAWL_WORKERS, or add disk';
  return findingOf(well, 'disk limits', well ? `${text}.` : `${text}: ${advice}.`, 'note');
}
