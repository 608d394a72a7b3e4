import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Breach, ChildLimits } from './child-limits.ts';

const checkEveryMs = 250;
/** The folder is measured at every fourth check, because reading it takes longer. */
const folderEvery = 4;

/** Checks the usage of the children regularly and calls `onBreach` once with the limit they broke. Returns a function that stops. */
export function watchLimits(
  limits: ChildLimits,
  folder: string,
  groups: Iterable<number>,
  onBreach: (breach: Breach) => void,
): () => void {
  const cpuSeconds = new Map<number, number>();
  let turn = 0;
  const look = (): Breach | null => {
    const usage = readUsage(groups);
    for (const [id, seconds] of usage.cpuSeconds) cpuSeconds.set(id, seconds);
    if (usage.memoryBytes > limits.memoryBytes) return 'memory';
    if (usage.processes > limits.processes) return 'processes';
    if (sum(cpuSeconds.values()) > limits.cpuSeconds) return 'cpu';
    if (turn++ % folderEvery !== 0) return null;
    return folderBytes(folder) > limits.folderBytes ? 'folder' : null;
  };
  const timer = setInterval(() => {
    const breach = look();
    if (breach === null) return;
    clearInterval(timer);
    onBreach(breach);
  }, checkEveryMs);
  return () => clearInterval(timer);
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}

interface ProcessUsage {
  readonly processes: number;
  readonly memoryBytes: number;
  /** Processor seconds by process id, of processes that still run. */
  readonly cpuSeconds: ReadonlyMap<number, number>;
}

interface ProcessRow {
  readonly id: number;
  readonly parent: number;
  readonly group: number;
  readonly cpuSeconds: number;
}

/** USER_HZ: the unit of times in /proc, 100 a second on every Linux that Node supports. */
const ticksPerSecond = 100;

/** Returns the usage of the groups and of all descendants of their members, also of those that left the group. */
export function readUsage(groups: Iterable<number>): ProcessUsage {
  const rows = readRows();
  const members = new Map<number, ProcessRow>();
  const wanted = new Set(groups);
  for (let found = -1; found !== members.size; ) {
    found = members.size;
    for (const row of rows) {
      if (wanted.has(row.group) || wanted.has(row.id) || members.has(row.parent)) members.set(row.id, row);
    }
  }
  let memoryBytes = 0;
  for (const id of members.keys()) memoryBytes += readMemory(id);
  const cpuSeconds = new Map([...members.values()].map((row) => [row.id, row.cpuSeconds]));
  return { processes: members.size, memoryBytes, cpuSeconds };
}

/** Returns the bytes on disk of all files below a folder. */
export function folderBytes(folder: string): number {
  let total = 0;
  for (const entry of list(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) total += folderBytes(path);
    // A file may vanish between readdir and stat.
    else total += (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
  }
  return total;
}

function list(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // The folder was removed while its parent was read.
    return [];
  }
}

function readRows(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    // The second field is the program's name in brackets, which may hold any character.
    const [, parent, group, ...rest] = (readProc(name, 'stat').split(') ').at(-1) ?? '').split(' ');
    if (parent === undefined || group === undefined) continue;
    const ticks = Number(rest[8]) + Number(rest[9]);
    rows.push({ id: Number(name), parent: Number(parent), group: Number(group), cpuSeconds: ticks / ticksPerSecond });
  }
  return rows;
}

/** Returns the bytes of anonymous and shared memory; the kernel can drop cached pages of files at any time. */
function readMemory(id: number): number {
  const status = readProc(String(id), 'status');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  return (kilobytes('RssAnon') + kilobytes('RssShmem')) * 1024;
}

function readProc(id: string, file: string): string {
  try {
    return readFileSync(join('/proc', id, file), 'utf8');
  } catch {
    // The process ended after it was listed.
    return '';
  }
}
