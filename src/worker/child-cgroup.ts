import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readText } from './process-usage.ts';

/** Cgroup of the children of one attempt, or of the inspector; the orphan cleaner removes it. */
export type ChildCgroup = ReturnType<typeof makeChildCgroup>;

/** Swap of a cgroup of version 1. With it the limit of memory is reached before that of memory and swap, whose failures Linux 6.18 does not count. */
const swapBytes = 2 ** 20;

/** Makes a cgroup whose processes may use so much memory together, swap included but for 1 MiB. */
export function makeChildCgroup(folder: string, memoryBytes: number) {
  mkdirSync(folder);
  const isSecond = existsSync(join(dirname(folder), 'cgroup.controllers'));
  const limits = isSecond
    ? { 'memory.max': memoryBytes, 'memory.swap.max': 0, 'memory.oom.group': 1 }
    : { 'memory.limit_in_bytes': memoryBytes, 'memory.memsw.limit_in_bytes': memoryBytes + swapBytes };
  for (const [name, value] of Object.entries(limits)) {
    // A kernel may count no swap.
    if (existsSync(join(folder, name))) writeFileSync(join(folder, name), String(value));
  }
  const count = (file: string, pattern: RegExp) => Number(pattern.exec(readText(join(folder, file)))?.[1] ?? 0);
  // True when the kernel ended a child because all together reached the limit. Without that limit in reach, it ended the child because the
  // machine was full, which is not the child's doing.
  const wasReached = isSecond
    ? () => count('memory.events', /^oom (\d+)/m) > 0 && count('memory.events', /^oom_kill (\d+)/m) > 0
    : () => count('memory.failcnt', /(\d+)/) > 0 && count('memory.oom_control', /^oom_kill (\d+)/m) > 0;
  return { folder, wasReached };
}
