import { gibibytes } from '../base/machine-memory.ts';
import type { FoundCgroup } from '../base/parent-cgroup.ts';
import {
  attemptMemoryBytes,
  copiesOfFile,
  inspectionFileBytes,
  inspectionMemoryBytes,
} from '../base/resource-limits.ts';
import { describeLandlock, tcpVersion } from '../model/isolation.ts';
import { isSupportedVersion } from '../store/redis/redis-process.ts';
import { type Finding, findingOf, fine, judged, note } from './doctor-finding.ts';

const minNode = 24;
const minFreeBytes = 1024 ** 3;
/** The magic numbers of tmpfs and ramfs. */
const memoryTypes = [0x0102_1994, 0x8584_58f6];
const earliest = Date.UTC(2025, 0);
const latest = Date.UTC(2100, 0);

export function checkNode(version: string): Finding {
  const isNew = Number.parseInt(version, 10) >= minNode;
  return findingOf(isNew ? 'ok' : 'problem', 'node', `Node is version ${version}; ${minNode} or newer is needed.`);
}

export function checkRedis(version: string | null, missing: Finding['level']): Finding {
  const absent = 'redis-server is not installed: trawl up starts one where TRAWL_REDIS_URL names none.';
  if (version === null) return { level: missing, about: 'redis-server', text: absent };
  const text = `redis-server is version ${version}; 7.0 or newer is needed.`;
  return findingOf(isSupportedVersion(version) ? 'ok' : missing, 'redis-server', text);
}

/** Checks that the clock shows a time between 2025 and 2100. */
export function checkClock(now: number): Finding {
  const text = `This machine says it is ${new Date(now).toISOString()}`;
  return judged('clock', now >= earliest && now < latest, `${text}.`, `${text}: correct its clock.`);
}

/** Returns `note` below 1 GiB of free space. */
export function checkFreeSpace(freeBytes: number, folder = 'the data folder'): Finding {
  const free = `The file system of ${folder} has ${(freeBytes / 1024 ** 3).toFixed(1)} GiB free`;
  return judged('disk', freeBytes >= minFreeBytes, `${free}.`, `${free}: a full disk stops every new job.`, 'note');
}

/** Returns `note` for a file system in memory, by the type that statfs tells: what a job fetches then counts as its memory. */
export function checkFileSystem(type: number): Finding {
  const inMemory = `The data folder lies in memory: the files of a job count against its ${attemptMemoryBytes / 1024 ** 3} GiB, and are lost with the machine; name a folder on a disk.`;
  return judged('file system', !memoryTypes.includes(type), 'The data folder lies on a disk.', inMemory, 'note');
}

/** Judges Landlock, which isolates children without bubblewrap, and those of the inspector from each other. */
export function checkLandlock(version: number): Finding {
  return findingOf(version >= tcpVersion ? 'ok' : 'note', 'landlock', describeLandlock(version));
}

export function checkCgroup(found: FoundCgroup | string): Finding {
  const about = 'cgroup';
  if (typeof found !== 'string') {
    const limited = `The kernel limits the memory of each attempt, in a cgroup of version ${found.version} below ${found.folder}.`;
    return fine(about, limited);
  }
  const start = 'systemd-run --user --scope -p Delegate=yes ./trawl up';
  const measured = `Memory of workers is only measured, four times a second (${found}); with systemd, "${start}" lets the kernel limit it.`;
  return note(about, measured);
}

export function checkMemorySum(workers: number, inspections: number, machineBytes: number): Finding {
  const sum = workers * attemptMemoryBytes + inspections * inspectionMemoryBytes;
  const text = `${workers} workers and ${inspections} inspections may use ${gibibytes(sum)} of memory, and there are ${gibibytes(machineBytes)}`;
  const advice = 'lower TRAWL_WORKERS or add memory';
  return judged('memory limits', sum <= machineBytes, `${text}.`, `${text}: ${advice}.`, 'note');
}

export function checkFileSum(workers: number, inspections: number, maxFileBytes: number, freeBytes: number): Finding {
  const sum = workers * copiesOfFile * maxFileBytes + inspections * inspectionFileBytes;
  const text = `${workers} workers and ${inspections} inspections may fill ${gibibytes(sum)} of disk, and ${gibibytes(freeBytes)} are free`;
  const advice = 'lower TRAWL_MAX_FILE_BYTES or TRAWL_WORKERS, or add disk';
  return judged('disk limits', sum <= freeBytes, `${text}.`, `${text}: ${advice}.`, 'note');
}
