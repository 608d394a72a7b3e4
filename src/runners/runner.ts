import type { Seen } from '../model/next.ts';
import type { Outcome } from '../model/outcome.ts';

export interface AttemptToRun {
  readonly name: string;
  readonly jobId: string;
  readonly attempt: number;
  /** Longest run of its worker in milliseconds; its wait for a place to run does not count. */
  readonly maxMs: number;
}

/** An attempt, as a worker's token names it. */
export interface AttemptId {
  readonly jobId: string;
  readonly attempt: number;
}

/** The worker of an attempt cannot be made yet; `reason` tells its caller why. */
export class StartDelayed extends Error {
  readonly reason: string;

  constructor(reason: string, cause: Error) {
    super(cause.message, { cause });
    this.reason = reason;
  }
}

/** Runs the workers of attempts as processes or as Jobs of a cluster. Every method may be repeated at any time. */
export interface Runner {
  /** Starts the attempt's worker unless it already exists. Throws `StartDelayed` when the reason is one that its caller should read. */
  start(attempt: AttemptToRun): Promise<void>;
  /** Ends a running worker and removes its leftovers, at once or a little later. */
  stop(attemptName: string): Promise<void>;
  /** Returns the state of the worker now. Throws when it is not known. */
  see(attemptName: string): Promise<Seen>;
  /** Calls back with the name of an attempt whose worker may have changed. A call is a hint: it may be late, repeated or lost. */
  watch(onChange: (attemptName: string) => void): () => void;
  /** Returns the names of the attempts that have a worker, of all jobs or of one. */
  list(jobId?: string): Promise<string[]>;
  /** Ends workers that cannot outlive this process and returns their attempts' names; other workers continue. */
  close(): Promise<string[]>;
}

/** Returns the name of an attempt, the same for every runner. */
export function attemptNameOf(jobId: string, attempt: number): string {
  return `${jobId}-${attempt}`;
}

export function jobIdOf(attemptName: string): string {
  return attemptName.slice(0, attemptName.lastIndexOf('-'));
}

export function attemptNumberOf(attemptName: string): number {
  return Number(attemptName.slice(attemptName.lastIndexOf('-') + 1));
}

/** Returns the outcome of an attempt without a verdict. Exit codes above 128 mean a signal. */
export function outcomeOfExitCode(code: number): Outcome {
  return code > 128 ? { is: 'interrupted', reason: `exit code ${code}` } : { is: 'failed', code: 'worker_failed' };
}

/** Returns the `watch` of a runner, and what calls all of its listeners. */
export function makeChangeListeners(): Pick<Runner, 'watch'> & { notify(attemptName: string): void } {
  const listeners = new Set<(attemptName: string) => void>();
  return {
    watch(changed) {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    notify(attemptName) {
      for (const changed of listeners) changed(attemptName);
    },
  };
}
