import { type ChildProcess, spawn } from 'node:child_process';
import type { Log } from '../base/log.ts';
import type { Outcome } from '../model/outcome.ts';
import { type AttemptToRun, jobIdOf, makeChangeListeners, outcomeOfExitCode, type Runner } from './runner.ts';

export interface ProcessRunnerOptions {
  /** The program and arguments that run a worker. */
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** What is good for this attempt alone; it reaches the worker on its standard input. */
  readonly tokenOf: (attempt: AttemptToRun) => string;
  readonly log: Log;
}

interface Child {
  readonly process: ChildProcess;
  readonly gone: Promise<void>;
  hasEnded: boolean;
}

const politeMilliseconds = 5000;

/** Runs each worker as a child process in a group of its own, which ends with this process. */
export function openProcessRunner(options: ProcessRunnerOptions): Runner {
  const children = new Map<string, Child>();
  const watchers = makeChangeListeners();

  const stop = async (name: string) => {
    const child = children.get(name);
    if (!child) return;
    if (!child.hasEnded) await end(child);
    children.delete(name);
  };

  return {
    async start(attempt) {
      if (children.has(attempt.name)) return;
      children.set(
        attempt.name,
        launch(options, attempt, () => watchers.tell(attempt.name)),
      );
    },
    stop,
    async see(name) {
      const child = children.get(name);
      if (!child) return { is: 'absent' };
      if (!child.hasEnded) return { is: 'running' };
      return { is: 'ended', outcome: outcomeOf(child.process) };
    },
    watch: watchers.watch,
    list: async (job) => [...children.keys()].filter((name) => job === undefined || jobIdOf(name) === job),
    async close() {
      const names = [...children.keys()];
      await Promise.all(names.map(stop));
      return names;
    },
  };
}

/** Starts a worker; `ended` is called at its end, also when it could not be started. */
function launch({ command, env, tokenOf, log }: ProcessRunnerOptions, attempt: AttemptToRun, ended: () => void): Child {
  const [file, ...args] = command;
  const child = spawn(file, args, { stdio: ['pipe', 'ignore', 'pipe'], detached: true, env });
  // Its input stays open as a lifeline: it closes when this process ends, however that happens, and the worker leaves.
  child.stdin.on('error', () => {});
  child.stdin.write(`${tokenOf(attempt)}\n`);
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said = `${said}${chunk}`.slice(-2000);
  });
  const known: Child = {
    process: child,
    hasEnded: false,
    // 'close' comes after the last output, also when it could not be started.
    gone: new Promise((resolve) => {
      const end = () => {
        known.hasEnded = true;
        resolve();
        ended();
      };
      child.once('error', (error) => {
        log.error('a worker could not be started', { attempt: attempt.name, error });
        end();
      });
      child.once('close', (code, signal) => {
        log.debug('a worker ended', { attempt: attempt.name, code, signal, said });
        end();
      });
    }),
  };
  return known;
}

/** How an attempt ended that told nobody: only its exit code speaks. */
function outcomeOf({ exitCode, signalCode, pid }: ChildProcess): Outcome {
  if (pid === undefined) return { is: 'interrupted', reason: 'the worker could not be started' };
  return exitCode === null ? { is: 'interrupted', reason: signalCode ?? 'killed' } : outcomeOfExitCode(exitCode);
}

/** Ends a worker and all that it started: politely, then for good. */
async function end({ process: child, gone }: Child): Promise<void> {
  const kill = (signal: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  };
  kill('SIGTERM');
  const timer = setTimeout(() => kill('SIGKILL'), politeMilliseconds);
  await gone;
  clearTimeout(timer);
}
