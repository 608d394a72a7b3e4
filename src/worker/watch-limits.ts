import { realpathSync } from 'node:fs';
import type { ChildCgroup } from './child-cgroup.ts';
import type { Breach, ChildLimits } from './child-limits.ts';
import { attemptLooks, folderBytes, type LookLimits, namelessFiles } from './file-usage.ts';
import { isHidden, type ProcessRow, readProcessTable, usageOf } from './process-usage.ts';

/** Children that share one set of limits. */
interface WatchedChildren {
  readonly limits: ChildLimits;
  /** `attemptLooks` unless given. */
  readonly looks?: LookLimits;
  readonly folder: string;
  /** Process groups that run; more may join. */
  readonly groups: Iterable<number>;
  readonly cgroup: ChildCgroup | null;
  /** Called once with the limit that they broke. */
  readonly onBreach: (breach: Breach) => void;
}

export type ChildWatch = ReturnType<typeof startChildWatch>;

const checkEveryMs = 250;
/** Files are measured at every fourth check, because reading them takes longer. */
const filesEvery = 4;
/** Looks, one a second, at which processes of ours may be hidden: they are so until they are restricted, which takes some milliseconds. */
const maxHiddenLooks = 5;

/** Checks the usage of children regularly. With `mayHide` children are not ended when they hide their open files. */
export function startChildWatch(mayHide = false) {
  const all = new Map<WatchedChildren, (table: readonly ProcessRow[]) => Breach | null>();
  const timer = setInterval(() => {
    if (all.size === 0) return;
    const table = readProcessTable();
    for (const [children, check] of [...all]) {
      const breach = check(table);
      if (breach === null) continue;
      all.delete(children);
      children.onBreach(breach);
    }
  }, checkEveryMs);
  /** Returns a function that checks what is still known afterwards and ends the watch over these children. */
  const add = (children: WatchedChildren) => {
    all.set(children, makeCheck(children, mayHide));
    return () => {
      // The kernel may have ended a child since the last check, and its own report says nothing of memory.
      if (all.delete(children) && children.cgroup?.wasReached()) children.onBreach('memory');
    };
  };
  return { add, stop: () => clearInterval(timer) };
}

function makeCheck({ limits, looks = attemptLooks, folder, groups, cgroup }: WatchedChildren, mayHide: boolean) {
  const cpuSeconds = new Map<number, number>();
  let turn = 0;
  let hiddenMemory = 0;
  const realFolder = realpathSync(folder);
  const hasHidden = makeHiddenCheck(groups, mayHide);
  return (table: readonly ProcessRow[]): Breach | null => {
    const usage = usageOf(groups, table);
    for (const [id, seconds] of usage.cpuSeconds) cpuSeconds.set(id, seconds);
    if (cgroup?.wasReached()) return 'memory';
    if (usage.memoryBytes + hiddenMemory > limits.memoryBytes) return 'memory';
    if (usage.ids.length > limits.processes) return 'processes';
    const spentSeconds = [...cpuSeconds.values()].reduce((sum, seconds) => sum + seconds, 0);
    if (spentSeconds > limits.cpuSeconds) return 'cpu';
    if (turn++ % filesEvery !== 0) return null;
    if (hasHidden(usage.ids)) return 'processes';
    const seen = new Set<number>();
    const namedBytes = folderBytes(folder, seen, { count: looks.names });
    const nameless = namelessFiles(usage.ids, seen, looks, realFolder);
    hiddenMemory = nameless.memoryBytes;
    if (nameless.openFiles > looks.openFiles) return 'processes';
    if (usage.memoryBytes + hiddenMemory > limits.memoryBytes) return 'memory';
    return namedBytes + nameless.diskBytes > limits.folderBytes ? 'folder' : null;
  };
}

/** Returns a function that is true once processes have hidden their open files for too many looks: a hidden process may hold any number of deleted files. */
function makeHiddenCheck(groups: Iterable<number>, mayHide: boolean): (ids: readonly number[]) => boolean {
  let hiddenLooks = 0;
  return (ids) => {
    if (mayHide) return false;
    // The first process of a group is a program of ours, which hides.
    const ours = new Set(groups);
    hiddenLooks = ids.some((id) => !ours.has(id) && isHidden(id)) ? hiddenLooks + 1 : 0;
    return hiddenLooks > maxHiddenLooks;
  };
}
