import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { killProcess } from './child-process.ts';
import { codeOf, messageOf } from './errors.ts';
import { makeFolder } from './make-folder.ts';
import { type FoundCgroup, findParent, isRootCgroup, mainLeaf, ownCgroup, readWords } from './parent-cgroup.ts';

/** Cgroup below which each attempt gets one. */
export type OpenCgroup = Awaited<ReturnType<typeof openCgroup>>;

const removeTries = 100;
const removePauseMs = 20;
const moveTries = 20;

/** Returns a cgroup below which this process may make others with a memory limit, or the reason why there is none. */
export function findCgroup(): FoundCgroup | string {
  try {
    const own = ownCgroup(readFileSync('/proc/self/mountinfo', 'utf8'), readFileSync('/proc/self/cgroup', 'utf8'));
    if (own === null) return 'no hierarchy of cgroups with a memory limit is mounted here';
    return findParent(own);
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns the prefix of the names of all cgroups whose processes work in a folder. */
export function cgroupPrefix(work: string): string {
  return `trawl-${createHash('sha256').update(work).digest('hex').slice(0, 12)}-`;
}

/** Lets cgroups be made below another one, and removes those that killed processes of the same work folder left there; `close` ends what is left below it and removes that. */
export async function openCgroup({ version, folder }: FoundCgroup, work: string) {
  const sweep = () => removeCgroups(folder, work);
  await sweep();
  if (version === 1) return { folder, close: sweep };
  const control = join(folder, 'cgroup.subtree_control');
  if (isRootCgroup(folder)) {
    await writeFile(control, '+memory');
    return { folder, close: sweep };
  }
  const main = join(folder, mainLeaf);
  await makeFolder(main);
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
  for (const name of names) if (name.startsWith(cgroupPrefix(work))) await removeCgroup(join(folder, name));
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
    for (const id of ids.split('\n').map(Number)) if (id > 0 && id !== process.pid) killProcess(id);
    try {
      return await rmdir(folder);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return;
      if (tries === removeTries) throw error;
      await pause(removePauseMs);
    }
  }
}
