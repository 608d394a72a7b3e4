import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { type BackoffLimits, backoffMs } from './backoff.ts';

const maxEndMs = 5_000;

interface KeepRunningOptions<End> extends BackoffLimits {
  readonly start: () => RunningChild<End>;
  /** The child that runs already; without it, `start` is called at once. */
  readonly first?: RunningChild<End>;
  /** A child that ran for longer counts as healthy: the next delay is the first one again. */
  readonly steadyMs: number;
  /** No child is started after the signal; the one that runs is the caller's to end. */
  readonly signal: AbortSignal;
  /** Called at each end that was not asked for, before the delay. */
  readonly onEnd: (end: End, delayMs: number) => unknown;
}

/** `ended` never rejects: a child that could not be started has ended too. */
type RunningChild<End> = { readonly ended: Promise<End> };

/** Starts a child again, with back-off, each time it ends by itself; resolves when the signal has fired and the last one has ended. */
export async function keepRunning<End>(options: KeepRunningOptions<End>): Promise<void> {
  const { start, steadyMs, signal, onEnd } = options;
  let failures = 0;
  for (let child = options.first ?? start(); ; child = start()) {
    const startedMs = performance.now();
    const end = await child.ended;
    if (signal.aborted) return;
    failures = performance.now() - startedMs > steadyMs ? 1 : failures + 1;
    const delayMs = backoffMs(failures, options);
    await onEnd(end, delayMs);
    // The delay ends early only because of the signal.
    await pause(delayMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
  }
}

/** Sends SIGTERM, and SIGKILL to a child that has not ended `graceMs` later; `group` means all processes of its group. */
export async function endChild(
  child: ChildProcess,
  ended: Promise<unknown>,
  graceMs: number,
  reach: 'child' | 'group' = 'child',
): Promise<void> {
  const kill = (signal: NodeJS.Signals) => (reach === 'group' ? killGroup(child, signal) : child.kill(signal));
  kill('SIGTERM');
  const hard = setTimeout(kill, graceMs, 'SIGKILL');
  await ended;
  clearTimeout(hard);
}

/** Signals every process of a detached child's group; without effect when the group has ended. */
export function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined) killProcess(-pid, signal);
}

/** Ends a process; without effect when it has ended, or belongs to another user. */
export function killProcess(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH or EPERM.
  }
}

/** Waits until a process that is not our child has ended, for some seconds at most. */
export async function untilGone(pid: number): Promise<void> {
  for (const end = performance.now() + maxEndMs; performance.now() < end; await pause(1)) {
    // Behind the name in brackets stands the state; Z is a process that only its parent has not noticed yet.
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z');
    if (/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))) return;
  }
}

export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
