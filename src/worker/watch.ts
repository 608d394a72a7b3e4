import type { Breach, ChildLimits } from './limits.ts';
import { folderBytes, readUsage } from './usage.ts';

export interface Watched {
  readonly limits: ChildLimits;
  readonly folder: string;
  /** Groups that run now. */
  readonly groups: () => Iterable<number>;
  /** Bytes that came from the network so far, or null while nothing is to be fetched. */
  readonly received: () => number | null;
  readonly broken: (breach: Breach) => void;
}

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

const everyMilliseconds = 250;
/** Speed and disk are looked at every so many times. */
const rarely = 4;

/** Looks again and again at what the children use, and says once which limit they broke. Gives what ends it. */
export function startWatch(watched: Watched): () => void {
  const { limits, folder, groups, received, broken } = watched;
  const cpuSeconds = new Map<number, number>();
  const speed = makeSpeedCheck(limits);
  let turn = 0;
  const look = (): Breach | null => {
    const usage = readUsage(groups());
    for (const [id, seconds] of usage.cpuSeconds) cpuSeconds.set(id, seconds);
    if (usage.memoryBytes > limits.memoryBytes) return 'memory';
    if (usage.processes > limits.processes) return 'processes';
    if (sum(cpuSeconds.values()) > limits.cpuSeconds) return 'cpu';
    if (turn++ % rarely !== 0) return null;
    const bytes = folderBytes(folder);
    if (bytes > limits.folderBytes) return 'folder';
    return speed(performance.now(), received(), bytes) ? 'speed' : null;
  };
  const timer = setInterval(() => {
    const breach = look();
    if (breach === null) return;
    clearInterval(timer);
    broken(breach);
  }, everyMilliseconds);
  return () => clearInterval(timer);
}

/**
 * Gives a function that says whether a fetch has been too slow for too long. What is written counts too: while parts are
 * joined nothing is received.
 */
export function makeSpeedCheck({ slowBytes, slowSeconds }: Pick<ChildLimits, 'slowBytes' | 'slowSeconds'>) {
  let samples: Sample[] = [];
  let written = 0;
  let size = 0;
  return (now: number, received: number | null, folderSize: number): boolean => {
    written += Math.max(0, folderSize - size);
    size = folderSize;
    if (received === null) {
      samples = [];
      return false;
    }
    const last = { at: now, bytes: received + written };
    samples.push(last);
    const since = now - slowSeconds * 1000;
    // The newest of those that are old enough stays: the time looked at is never shorter than it should be.
    while (samples[1] && samples[1].at <= since) samples.shift();
    const first = samples[0] ?? last;
    return first.at <= since && last.bytes - first.bytes < (slowBytes * (last.at - first.at)) / 1000;
  };
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
