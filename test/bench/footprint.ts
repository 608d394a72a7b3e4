import { globSync, readFileSync } from 'node:fs';

/** A process and everything below it. */
export function treeOf(root: number): number[] {
  const parents = new Map<number, number>();
  for (const path of globSync('/proc/[0-9]*/stat')) {
    const stat = readIfThere(path);
    if (stat) parents.set(Number(path.split('/')[2]), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
  }
  const tree = [root];
  // The list grows while it is walked.
  for (const one of tree) for (const [pid, parent] of parents) if (parent === one) tree.push(pid);
  return tree;
}

/** The memory of processes in megabytes. */
export interface Resident {
  /** Each page once, however many of them share it, and whoever else does. */
  readonly once: number;
  /** As `ps` counts: what is shared counts for each of them. */
  readonly each: number;
}

/** Adds up the memory of processes. */
export function residentOf(pids: readonly number[]): Resident {
  let [own, each] = [0, 0];
  const files = new Map<string, number>();
  for (const pid of pids) {
    for (const { file, rss, anonymous } of mappingsOf(pid)) {
      own += anonymous;
      each += rss;
      files.set(file, Math.max(files.get(file) ?? 0, rss - anonymous));
    }
  }
  const shared = [...files.values()].reduce((sum, kilobytes) => sum + kilobytes, 0);
  return { once: (own + shared) / 1024, each: each / 1024 };
}

/** The mappings of a process in kilobytes; `file` is one part of one file. */
function mappingsOf(pid: number) {
  const text = readIfThere(`/proc/${pid}/smaps`);
  return text.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m).map((mapping) => {
    const kilobytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(mapping)?.[1] ?? 0);
    const [, , offset, device, inode] = mapping.split(/\s+/, 5);
    return { file: `${device} ${inode} ${offset}`, rss: kilobytes('Rss'), anonymous: kilobytes('Anonymous') };
  });
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended meanwhile.
    return '';
  }
}
