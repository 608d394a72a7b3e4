import { type ChildProcess, spawn } from 'node:child_process';
import { endChild } from '../base/child-process.ts';
import type { Log } from '../base/log.ts';
import type { Outcome } from '../model/outcome.ts';
import { type AttemptToRun, jobIdOf, makeChangeListeners, outcomeOfExitCode, type Runner } from './runner.ts';

interface ProcessRunnerOptions {
  /** Program and arguments of a worker. */
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Returns the token of an attempt, which the worker reads from its standard input. */
  readonly tokenOf: (attempt: AttemptToRun) => string;
  readonly log: Log;
}

interface WorkerProcess {
  readonly process: ChildProcess;
  readonly gone: Promise<void>;
  hasEnded: boolean;
}

const stopGraceMs = 5000;
const maxLoggedChars = 2000;

/** Runs each worker as a child process in a group of its own, which ends with this process. */
export function openProcessRunner(options: ProcessRunnerOptions): Runner {
  const workers = new Map<string, WorkerProcess>();
  const listeners = makeChangeListeners();

  const stop = async (attemptName: string) => {
    const worker = workers.get(attemptName);
    if (!worker) return;
    if (!worker.hasEnded) await endChild(worker.process, worker.gone, stopGraceMs, 'group');
    workers.delete(attemptName);
  };

  return {
    async start(attempt) {
      if (workers.has(attempt.name)) return;
      workers.set(
        attempt.name,
        startWorker(options, attempt, () => listeners.notify(attempt.name)),
      );
    },
    stop,
    async see(attemptName) {
      const worker = workers.get(attemptName);
      if (!worker) return { is: 'absent' };
      if (!worker.hasEnded) return { is: 'running' };
      return { is: 'ended', outcome: outcomeOf(worker.process) };
    },
    watch: listeners.watch,
    list: async (jobId) => [...workers.keys()].filter((name) => jobId === undefined || jobIdOf(name) === jobId),
    async close() {
      const attemptNames = [...workers.keys()];
      await Promise.all(attemptNames.map(stop));
      return attemptNames;
    },
  };
}

/** Starts a worker; `ended` is called at its end, also when it could not be started. */
function startWorker(options: ProcessRunnerOptions, attempt: AttemptToRun, ended: () => void): WorkerProcess {
  const { command, env, tokenOf, log } = options;
  const [file, ...args] = command;
  const child = spawn(file, args, { stdio: ['pipe', 'ignore', 'pipe'], detached: true, env });
  // The standard input stays open: it closes when this process ends, however that happens, and then the worker exits.
  child.stdin.on('error', () => {});
  child.stdin.write(`${tokenOf(attempt)}\n`);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk}`.slice(-maxLoggedChars);
  });
  const worker: WorkerProcess = {
    process: child,
    hasEnded: false,
    // 'close' comes after the last output.
    gone: new Promise((resolve) => {
      const end = () => {
        worker.hasEnded = true;
        resolve();
        ended();
      };
      child.once('error', (error) => {
        log.error('a worker could not be started', { attempt: attempt.name, error });
        end();
      });
      child.once('close', (code, signal) => {
        log.debug('a worker ended', { attempt: attempt.name, code, signal, said: stderr });
        end();
      });
    }),
  };
  return worker;
}

/** Returns the outcome of a worker of which only the exit code is known. */
function outcomeOf({ exitCode, signalCode, pid }: ChildProcess): Outcome {
  if (pid === undefined) return { is: 'interrupted', reason: 'the worker could not be started' };
  return exitCode === null ? { is: 'interrupted', reason: signalCode ?? 'killed' } : outcomeOfExitCode(exitCode);
}
