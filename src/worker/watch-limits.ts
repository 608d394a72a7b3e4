import type { Breach, ChildLimits } from './child-limits.ts';
import { folderBytes, readUsage } from './process-usage.ts';

export interface WatchLimitsOptions {
  readonly limits: ChildLimits;
  readonly folder: string;
  /** Returns the process groups that run now. */
  readonly groups: () => Iterable<number>;
  readonly onBreach: (breach: Breach) => void;
}

const checkEveryMs = 250;
/** The folder is measured at every fourth check, because reading it takes longer. */
const folderEvery = 4;

/** Checks the usage of the children regularly and calls `broken` once with the limit they broke. Returns a function that stops. */
export function watchLimits(watched: WatchLimitsOptions): () => void {
  const { limits, folder, groups, onBreach } = watched;
  const cpuSeconds = new Map<number, number>();
  let turn = 0;
  const look = (): Breach | null => {
    const usage = readUsage(groups());
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
