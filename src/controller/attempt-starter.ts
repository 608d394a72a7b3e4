import type { Job } from '../model/job.ts';
import { attemptNameOf, type Runner } from '../runners/runner.ts';
import { noteProgress } from '../store/jobs/note-progress.ts';
import type { RecordStore } from '../store/script.ts';

/** Stage of a job whose worker cannot be made. */
export const startRefused = 'It cannot be started now';
const waitingForStart = {
  progress: 0,
  running: false,
  stage: startRefused,
  speed_bytes: null,
  eta_seconds: null,
};

/** Starts workers and remembers attempts whose start failed: without a worker they cannot be interrupted. */
export class AttemptStarter {
  readonly #store: RecordStore;
  readonly #failed = new Set<string>();

  constructor(store: RecordStore) {
    this.#store = store;
  }

  hasFailed(attemptName: string): boolean {
    return this.#failed.has(attemptName);
  }

  /** Notes that nobody has tried to start an attempt yet, which may be recorded all the same. */
  noteUnstarted(attemptName: string): void {
    this.#failed.add(attemptName);
  }

  /** True when the start of the attempt had failed. */
  forget(attemptName: string): boolean {
    return this.#failed.delete(attemptName);
  }

  /** When the worker cannot be started, notes that as the stage of the job and throws. */
  async start(runner: Runner, job: Job, attempt: number, maxMs: number): Promise<void> {
    const name = attemptNameOf(job.id, attempt);
    try {
      await runner.start({ name, jobId: job.id, attempt, endpoint: job.endpoint, maxMs });
      this.#failed.delete(name);
    } catch (error) {
      this.#failed.add(name);
      await noteProgress(this.#store, job, attempt, waitingForStart);
      throw error;
    }
  }
}
