import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/** Cgroup of this process, in the hierarchy that limits memory. */
export interface FoundCgroup {
  readonly version: 1 | 2;
  readonly folder: string;
}

/** Leaf for processes of trawl itself: in version 2 a cgroup that gives memory limits to others has no process. */
export const mainLeaf = 'trawl-main';

/** Returns the cgroup of a process, from its `mountinfo` and `cgroup`; `null` without a hierarchy for memory. */
export function ownCgroup(mountinfo: string, cgroups: string): FoundCgroup | null {
  const mounts = mountinfo.split('\n').map((line) => {
    const [mount = '', kind = ''] = line.split(' - ');
    const [, , , root = '', folder = ''] = mount.split(' ');
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

/** Returns the cgroup below which a process in this one may make others, or the reason against it; throws where it may not write. */
export function findParent(own: FoundCgroup): FoundCgroup | string {
  if (own.version === 1) {
    accessSync(own.folder, constants.W_OK);
    return own;
  }
  // An earlier start under the same supervisor moved it there.
  const folder = basename(own.folder) === mainLeaf ? dirname(own.folder) : own.folder;
  if (!readWords(join(folder, 'cgroup.controllers')).includes('memory'))
    return 'memory is not delegated to this cgroup';
  for (const name of ['', 'cgroup.procs', 'cgroup.subtree_control']) accessSync(join(folder, name), constants.W_OK);
  if (isRootCgroup(folder)) return { version: 2, folder };
  if (/^session-.*\.scope$/.test(basename(folder))) return 'this cgroup belongs to the whole login session';
  const known = new Set(ancestors());
  const others = readWords(join(folder, 'cgroup.procs')).filter((id) => !known.has(Number(id)));
  return others.length === 0 ? { version: 2, folder } : 'this cgroup has processes of others';
}

/** The root of the hierarchy has no type, and may have processes beside cgroups. */
export function isRootCgroup(folder: string): boolean {
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

export function readWords(file: string): string[] {
  return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);
}
