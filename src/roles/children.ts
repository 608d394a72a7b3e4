import { type ChildProcess, spawn } from 'node:child_process';
import type { Log } from '../base/log.ts';

/** A part of trawl that runs in a process of its own, beside this one. */
export interface ChildPart {
  /** Resolves when it is gone for good. */
  stop(): Promise<void>;
  pid(): number | undefined;
}

export interface ChildOptions {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly log: Log;
}

const firstDelay = 200;
const longestDelay = 5_000;
const steadyMilliseconds = 10_000;
const politeMilliseconds = 4_000;

/** Starts a part and starts it again with back-off when it ends by itself (D93). It ends with this process: its input is a lifeline. */
export function keepChild({ name, command, env, log }: ChildOptions): ChildPart {
  const [file, ...args] = command;
  let child: ChildProcess | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isStopping = false;
  let delay = firstDelay;
  let gone = Promise.resolve();

  const start = () => {
    const began = performance.now();
    const started = spawn(file, args, { stdio: ['pipe', 'ignore', 'inherit'], detached: true, env });
    child = started;
    started.stdin.on('error', () => {
      // It has ended; what follows is told by its end.
    });
    gone = new Promise((resolve) => {
      const end = (why: object) => {
        child = null;
        resolve();
        if (isStopping) return;
        delay = performance.now() - began > steadyMilliseconds ? firstDelay : Math.min(longestDelay, delay * 2);
        log.warn(`${name} ended: it is started again`, { ...why, again_ms: delay });
        timer = setTimeout(start, delay);
      };
      started.once('error', (error) => end({ error }));
      started.once('exit', (code, signal) => end({ code, signal }));
    });
  };
  start();
  return {
    pid: () => child?.pid,
    async stop() {
      isStopping = true;
      clearTimeout(timer);
      child?.kill('SIGTERM');
      const hard = setTimeout(() => child?.kill('SIGKILL'), politeMilliseconds);
      await gone;
      clearTimeout(hard);
    },
  };
}
