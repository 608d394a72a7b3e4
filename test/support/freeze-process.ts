import { readdirSync, readFileSync } from 'node:fs';
import { until } from './until.ts';

/** Returns the state of each thread of a process, `T` for one that is stopped. */
function statesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '';
  });
}

/**
 * Stops a process and waits until each of its threads has stopped: on a busy machine it may answer a request between the signal
 * and that. Returns what lets it go on.
 */
export async function freezeProcess(pid: number): Promise<() => void> {
  process.kill(pid, 'SIGSTOP');
  await until(() => statesOf(pid).every((state) => state === 'T'), 5, 'the process is stopped');
  return () => void process.kill(pid, 'SIGCONT');
}
