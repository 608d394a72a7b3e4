import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../base/errors.ts';

export interface ProcessRow {
  readonly id: number;
  readonly parent: number;
  readonly group: number;
  readonly cpuSeconds: number;
  /** Thread by whose id memory and files are read: another one when the first ended before it, which then shows none. */
  readonly thread: number;
}

/** USER_HZ: the unit of times in /proc, 100 a second on every Linux that Node supports. */
const ticksPerSecond = 100;

export function readProcessTable(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    // The second field is the program's name in brackets, which may hold any character.
    const [state, parent, group, ...rest] = (readProc(name, 'stat').split(') ').at(-1) ?? '').split(' ');
    if (parent === undefined || group === undefined) continue;
    const ticks = Number(rest[8]) + Number(rest[9]);
    const thread = Number(state === 'Z' && Number(rest[14]) > 1 ? findOtherThread(name) : name);
    const cpuSeconds = ticks / ticksPerSecond;
    rows.push({ id: Number(name), parent: Number(parent), group: Number(group), cpuSeconds, thread });
  }
  return rows;
}

/**
 * Returns the usage of the groups and of all descendants of their members, also of those that left the group: of each process the id of a
 * thread that shows memory and files, and by its own id the processor seconds.
 */
export function usageOf(groups: Iterable<number>, table: readonly ProcessRow[]) {
  const members = membersOf(groups, table);
  const memoryBytes = members.reduce((sum, { thread }) => sum + readMemory(thread), 0);
  const cpuSeconds = new Map(members.map((row) => [row.id, row.cpuSeconds]));
  return { ids: members.map(({ thread }) => thread), memoryBytes, cpuSeconds };
}

/** Returns the ids in our own process table of descendants of `ancestor` that its sandbox knows by the id inside: one, or none. */
export function findDescendants(ancestor: number, idInside: number): number[] {
  const rows = membersOf([ancestor], readProcessTable());
  return rows.map(({ id }) => id).filter((id) => idsOf(id).at(-1) === idInside);
}

function membersOf(groups: Iterable<number>, table: readonly ProcessRow[]): ProcessRow[] {
  const members = new Map<number, ProcessRow>();
  const wanted = new Set(groups);
  for (let found = -1; found !== members.size; ) {
    found = members.size;
    for (const row of table) {
      if (wanted.has(row.group) || wanted.has(row.id) || members.has(row.parent)) members.set(row.id, row);
    }
  }
  return [...members.values()];
}

/** Returns true for a process of our own user whose open files cannot be seen: it has hidden them, or has only just been started by one that has. */
export function isHidden(id: number): boolean {
  try {
    readlinkSync(join('/proc', String(id), 'cwd'));
    return false;
  } catch (error) {
    const user = /^Uid:\t\d+\t(\d+)/m.exec(readProc(String(id), 'status'))?.[1];
    return codeOf(error) === 'EACCES' && Number(user) === process.geteuid?.();
  }
}

function findOtherThread(id: string): string {
  return lookOr(() => readdirSync(join('/proc', id, 'task')).find((thread) => thread !== id) ?? id, id);
}

/** Returns the bytes of anonymous and shared memory, also in swap, and of page tables; the kernel can drop cached pages of files at any time. */
function readMemory(id: number): number {
  const status = readProc(String(id), 'status');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  const counted = ['RssAnon', 'RssShmem', 'VmSwap', 'VmPTE'];
  return counted.reduce((sum, name) => sum + kilobytes(name), 0) * 1024;
}

/** Ids of a process in the nested namespaces of processes, the innermost last. */
function idsOf(id: number): number[] {
  const [, ids = ''] = /^NSpid:\s*(.*)$/m.exec(readProc(String(id), 'status')) ?? [];
  return ids.split('\t').map(Number);
}

/** Returns '' for a process that ended after it was listed. */
function readProc(id: string, file: string): string {
  return readText(join('/proc', id, file));
}

/** Returns a file of the kernel; '' for one that is gone. */
export function readText(path: string): string {
  return lookOr(() => readFileSync(path, 'utf8'), '');
}

/** Returns `otherwise` when it cannot be looked at: the process ended after it was listed, its file was closed, or it is another user's. */
export function lookOr<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
