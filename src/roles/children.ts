import { type ChildProcess, spawn } from 'node:child_process';
import { endChild, keepRunning } from '../base/child-process.ts';
import type { Log } from '../base/log.ts';

/** A role that runs in a child process beside this one. */
export interface ChildRole {
  /** Resolves when the child has ended for good. */
  stop(): Promise<void>;
  pid(): number | undefined;
}

export interface ChildRoleOptions {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly log: Log;
}

const restart = { firstMs: 200, maxMs: 5_000, steadyMs: 10_000 };
const graceMs = 4_000;

/** Starts a role and starts it again with back-off when it ends by itself (D93). Its standard input is a lifeline: it ends with this process. */
export function keepChild({ name, command, env, log }: ChildRoleOptions): ChildRole {
  const [file, ...args] = command;
  const stopping = new AbortController();
  let child: ChildProcess | null = null;
  let ended: Promise<object> = Promise.resolve({});

  const start = () => {
    const started = spawn(file, args, { stdio: ['pipe', 'ignore', 'inherit'], detached: true, env });
    child = started;
    started.stdin.on('error', () => {
      // The child has ended; the event of its end follows.
    });
    ended = new Promise<object>((resolve) => {
      started.once('error', (error) => resolve({ error }));
      started.once('exit', (code, signal) => resolve({ code, signal }));
    }).finally(() => {
      child = null;
    });
    return { ended };
  };
  const onEnd = (end: object, delayMs: number) =>
    log.warn('a child process ended: it is started again', { child: name, ...end, again_ms: delayMs });
  const kept = keepRunning({ start, signal: stopping.signal, onEnd, ...restart });
  return {
    pid: () => child?.pid,
    async stop() {
      stopping.abort();
      if (child) await endChild(child, ended, graceMs);
      await kept;
    },
  };
}
