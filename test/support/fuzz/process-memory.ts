import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Growth that is no leak: caches fill, and the heap is collected late. */
const slackBytes = 128 * 2 ** 20;

/** Resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

/** Live bytes of the heap of this process. */
export function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

/** Fails when memory has grown by more than half and 128 MiB since the process was warm. */
export function expectStable(warm: number, now: number, whose: string): void {
  if (now > 1.5 * warm + slackBytes) {
    throw new Error(
      `The memory of ${whose} grew from ${Math.round(warm / 2 ** 20)} to ${Math.round(now / 2 ** 20)} MiB`,
    );
  }
}
