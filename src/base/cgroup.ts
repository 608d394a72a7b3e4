import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Cgroup of this process, in the hierarchy that limits memory. */
export interface CgroupPlace {
  readonly version: 1 | 2;
  readonly folder: string;
}

/** Cgroup below which each attempt gets one. */
export interface OpenCgroup {
  readonly folder: string;
  /** Ends what is left below it and removes that. */
  readonly close: () => Promise<void>;
}

const removeTries = 100;
const removePauseMs = 20;
const moveTries = 20;
/** Leaf for processes of trawl itself: in version 2 a cgroup that gives memory limits to others has no process. */
const leaf = 'trawl-main';

/** Returns where a process is, from its `mountinfo` and `cgroup`; `null` without a hierarchy for memory. */
export function placeOf(mountinfo: string, cgroups: string): CgroupPlace | null {
  const mounts = mountinfo.split('\n').map((line) => {
    const [place = '', kind = ''] = line.split(' - ');
    const [, , , root = '', folder = ''] = place.split(' ');
    const [type = '', , options = ''] = kind.split(' ');
    return { root, folder, type, controllers: options.split(',') };
  });
  const paths = cgroups.split('\n').map((line) => {
    const [, controllers = '', ...path] = line.split(':');
    return { controllers: controllers.split(','), path: path.join(':') };
  });
  const first = mounts.find(({ type, controllers }) => type === 'cgroup' && controllers.includes('memory'));
  const mount = first ?? mounts.find(({ type }) => type === 'cgroup2');
  const path = paths.find(({ controllers }) => controllers.includes(first ? 'memory' : ''))?.path;
  if (mount === undefined || path === undefined || path.startsWith('/..')) return null;
  const root = mount.root === '/' ? '' : mount.root;
  if (!`${path}/`.startsWith(`${root}/`)) return null;
  return { version: first ? 1 : 2, folder: resolve(mount.folder, `.${path.slice(root.length)}`) };
}

/** Returns a cgroup below which this process may make others with a memory limit, or the reason why there is none. */
export function findCgroup(): CgroupPlace | string {
  try {
    const place = placeOf(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'));
    if (place === null) return 'no hierarchy of cgroups with a memory limit is mounted here';
    return judgePlace(place);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns the cgroup below which a process in this one may make others, or the reason against it; throws where it may not write. */
export function judgePlace(place: CgroupPlace): CgroupPlace | string {
  const { version, folder: own } = place;
  if (version === 1) {
    accessSync(own, constants.W_OK);
    return place;
  }
  // An earlier start under the same supervisor moved it there.
  const folder = basename(own) === leaf ? dirname(own) : own;
  if (!readWords(join(folder, 'cgroup.controllers')).includes('memory'))
    return 'memory is not delegated to this cgroup';
  for (const name of ['', 'cgroup.procs', 'cgroup.subtree_control']) accessSync(join(folder, name), constants.W_OK);
  if (isRoot(folder)) return { version: 2, folder };
  if (/^session-.*\.scope$/.test(basename(folder))) return 'this cgroup belongs to the whole login session';
  const known = new Set(ancestors());
  const others = readWords(join(folder, 'cgroup.procs')).filter((id) => !known.has(Number(id)));
  return others.length === 0 ? { version: 2, folder } : 'this cgroup has processes of others';
}

/** The root of the hierarchy has no type, and may have processes beside cgroups. */
function isRoot(folder: string): boolean {
  return !existsSync(join(folder, 'cgroup.type'));
}

function ancestors(): number[] {
  const ids = [process.pid];
  for (let id = process.ppid; id > 0; ) {
    ids.push(id);
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8');
    id = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  }
  return ids;
}

/** Returns how the names of all cgroups begin whose processes work in a folder. */
export function cgroupNames(work: string): string {
  return `trawl-${createHash('sha256').update(work).digest('hex').slice(0, 12)}-`;
}

/** Lets cgroups be made below a place, and removes those that killed processes of the same work folder left there. */
export async function openCgroup({ version, folder }: CgroupPlace, work: string): Promise<OpenCgroup> {
  const sweep = () => removeCgroups(folder, work);
  await sweep();
  if (version === 1) return { folder, close: sweep };
  const control = join(folder, 'cgroup.subtree_control');
  if (isRoot(folder)) {
    await writeFile(control, '+memory');
    return { folder, close: sweep };
  }
  const main = join(folder, leaf);
  await mkdir(main, { recursive: true });
  await moveAll(folder, main);
  await writeFile(control, '+memory');
  const close = async () => {
    await sweep();
    await writeFile(control, '-memory');
    await moveAll(main, folder);
    await rmdir(main);
  };
  return { folder, close };
}

/** Removes the cgroups below a folder whose processes worked in a work folder. */
export async function removeCgroups(folder: string, work: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) if (name.startsWith(cgroupNames(work))) await removeCgroup(join(folder, name));
}

async function moveAll(from: string, to: string): Promise<void> {
  for (let tries = 0; tries < moveTries; tries++) {
    const ids = readWords(join(from, 'cgroup.procs'));
    if (ids.length === 0) return;
    // A process may end before it is moved.
    for (const id of ids) await writeFile(join(to, 'cgroup.procs'), id).catch(() => {});
  }
}

/** Ends every process in a cgroup and removes it; resolves also when there is none. */
export async function removeCgroup(folder: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const ids = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
    for (const id of ids.split('\n')) kill(Number(id));
    try {
      return await rmdir(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      if (tries === removeTries) throw error;
      await pause(removePauseMs);
    }
  }
}

function kill(id: number): void {
  if (id <= 0 || id === process.pid) return;
  try {
    process.kill(id, 'SIGKILL');
  } catch {
    // It has ended before.
  }
}

function readWords(file: string): string[] {
  return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);
}
