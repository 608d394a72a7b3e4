import type { Endpoint } from '../model/job.ts';
import type { Seen } from '../model/next.ts';
import type { Outcome } from '../model/outcome.ts';

/** One attempt of one job that is to run. */
export interface AttemptToRun {
  readonly name: string;
  readonly jobId: string;
  readonly attempt: number;
  readonly endpoint: Endpoint;
  /** When it must have ended. */
  readonly deadline: number;
}

/** The attempt that a token is good for. */
export interface AttemptId {
  readonly jobId: string;
  readonly attempt: number;
}

/** Runs the workers of attempts somewhere. Every method may be called again at any time. */
export interface Runner {
  /** Starts the attempt's worker unless it already exists. */
  start(attempt: AttemptToRun): Promise<void>;
  /** Ends the worker, running or ended, and removes what it left. */
  stop(name: string): Promise<void>;
  /** Tells what is there now. Throws when it cannot know. */
  see(name: string): Promise<Seen>;
  /** Calls back with the name of an attempt whose worker may have changed: a hint, late, repeated or lost. */
  watch(changed: (name: string) => void): () => void;
  /** Names of all workers that are known to exist, or of those of one job. */
  list(job?: string): Promise<string[]>;
  /** Leaves. Workers that cannot outlive this process end, and their names are answered; others go on. */
  close(): Promise<string[]>;
}

/** The name of an attempt, the same wherever it runs. */
export function attemptNameOf(job: string, attempt: number): string {
  return `${job}-${attempt}`;
}

/** The job in the name of an attempt. */
export function jobIdOf(name: string): string {
  return name.slice(0, name.lastIndexOf('-'));
}

/** The number of the attempt in its name. */
export function attemptNumberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}

/** How an attempt ended that said nothing: by its exit code. Those above 128 are the signals that ended it. */
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
