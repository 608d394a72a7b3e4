import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { endChild } from '../base/child-process.ts';
import type { Log } from '../base/log.ts';
import type { Outcome } from '../model/outcome.ts';
import {
  type AttemptToRun,
  jobIdOf,
  makeChangeListeners,
  outcomeOfExitCode,
  type Runner,
  StartDelayed,
} from './runner.ts';

interface ProcessRunnerOptions {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** Returns the token of an attempt, which the worker reads from its standard input. */
  readonly tokenOf: (attempt: AttemptToRun) => string;
  /** Returns the free bytes of the disk to which workers write. */
  readonly freeBytes: () => number;
  readonly log: Log;
}

interface WorkerProcess {
  readonly process: ChildProcess;
  /** Rejects when the worker could not be started. */
  readonly spawned: Promise<unknown>;
  readonly gone: Promise<void>;
  hasEnded: boolean;
}

const stopGraceMs = 5000;
/** No worker starts with less: its attempt would fail, and a job has few of them. */
const minFreeBytes = 16 * 1024 ** 2;
const diskFull = 'The disk of the workers is full';
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
      const free = options.freeBytes();
      if (free < minFreeBytes) throw new StartDelayed(diskFull, new Error(`${free} bytes are free`));
      const worker = startWorker(options, attempt, () => listeners.notify(attempt.name));
      workers.set(attempt.name, worker);
      await worker.spawned.catch((error) => {
        // Such as a program that is being replaced, or no process left: an attempt without a worker was not interrupted.
        workers.delete(attempt.name);
        throw error;
      });
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

function startWorker(options: ProcessRunnerOptions, attempt: AttemptToRun, onEnd: () => void): WorkerProcess {
  const { command, env, tokenOf, log } = options;
  const [file, ...args] = command;
  const child = spawn(file, args, { stdio: ['pipe', 'ignore', 'pipe'], detached: true, env });
  // A process that can open no more files makes a child without pipes, whose error comes a moment later.
  const { stdin, stderr: errors }: Partial<ChildProcessByStdio<Writable, null, Readable>> = child;
  // The standard input stays open: it closes when this process ends, however that happens, and then the worker exits.
  stdin?.on('error', () => {});
  stdin?.write(`${tokenOf(attempt)}\n`);
  let stderr = '';
  errors?.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk}`.slice(-maxLoggedChars);
  });
  const worker: WorkerProcess = {
    process: child,
    spawned: once(child, 'spawn'),
    hasEnded: false,
    // 'close' comes after the last output.
    gone: new Promise((resolve) => {
      const end = () => {
        worker.hasEnded = true;
        resolve();
        // A start that failed is no change: `start` tells it.
        if (child.pid !== undefined) onEnd();
      };
      child.once('error', end);
      child.once('close', (code, signal) => {
        log.debug('a worker ended', { attempt: attempt.name, code, signal, said: stderr });
        end();
      });
    }),
  };
  return worker;
}

/** Returns the outcome of a worker of which only the exit code is known. */
function outcomeOf({ exitCode, signalCode }: ChildProcess): Outcome {
  return exitCode === null ? { is: 'interrupted', reason: signalCode ?? 'killed' } : outcomeOfExitCode(exitCode);
}
