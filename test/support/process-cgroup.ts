import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findCgroup, openCgroup } from '../../src/base/cgroup.ts';
import { readWords } from '../../src/base/parent-cgroup.ts';

/** Cgroup that limits the number of processes, as that of a pod may. */
export interface ProcessCgroup {
  /** Moves a process into it; what that starts later is in it, too. */
  readonly add: (id: string) => void;
  /** `max` for no limit. */
  readonly limit: (most: number | 'max') => void;
  readonly remove: () => Promise<void>;
}

/** Hierarchy of version 1, where it is mounted. */
const ofProcesses = '/sys/fs/cgroup/pids';

/** Returns what makes such a cgroup here, with version 1 or 2, or the reason why this user may make none. */
export function findProcessCgroup(): (() => Promise<ProcessCgroup>) | string {
  try {
    if (existsSync(ofProcesses)) {
      accessSync(ofProcesses, constants.W_OK);
      return async () => makeCgroup(ofProcesses, async () => {});
    }
    const here = findCgroup();
    if (typeof here === 'string') return here;
    if (here.version === 1) return 'the number of processes is not limited by cgroups of this machine';
    if (!readWords(join(here.folder, 'cgroup.controllers')).includes('pids'))
      return 'pids is not delegated to this cgroup';
    return async () => {
      const opened = await openCgroup(here, `trawl-test-${process.pid}`);
      const control = join(opened.folder, 'cgroup.subtree_control');
      const isLimited = readWords(control).includes('pids');
      if (!isLimited) writeFileSync(control, '+pids');
      return makeCgroup(opened.folder, async () => {
        if (!isLimited) writeFileSync(control, '-pids');
        await opened.close();
      });
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function makeCgroup(parent: string, close: () => Promise<void>): ProcessCgroup {
  const folder = join(parent, `trawl-test-${process.pid}`);
  mkdirSync(folder);
  return {
    add: (id) => writeFileSync(join(folder, 'cgroup.procs'), id),
    limit: (most) => writeFileSync(join(folder, 'pids.max'), String(most)),
    async remove() {
      rmdirSync(folder);
      await close();
    },
  };
}
