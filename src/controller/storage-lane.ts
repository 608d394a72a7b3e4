import { backoffMs } from '../base/backoff.ts';
import { fewLines } from '../base/few-lines.ts';
import type { Log } from '../base/log.ts';
import type { StorageProbe } from './storage-probe.ts';

interface StorageLaneOptions {
  readonly probe: StorageProbe;
  readonly log: Log;
  /** Called when a job whose work has failed, or did not begin, may add it again. */
  readonly again: (jobId: string) => void;
  readonly firstMs?: number;
}

interface StorageWork {
  /** Fails when the object store does not answer. */
  readonly run: () => Promise<unknown>;
  /** The job that adds it again; `null` for work that is dropped when it cannot be done now. */
  readonly jobId: string | null;
}

/** Calls at once. Joining the parts of one large file may take S3 a minute. */
const maxRunning = 16;
const firstMs = 2_000;
const maxMs = 60_000;

/**
 * Calls of the object store for jobs. They hold no slot of the work queue, so an object store that is slow or hangs stops
 * only jobs that need it. While it is away none begins; a job whose own call fails repeats it with back-off.
 */
export class StorageLane {
  readonly #options: StorageLaneOptions;
  readonly #warn: Log['warn'];
  readonly #running = new Map<string, Promise<void>>();
  readonly #waiting = new Map<string, StorageWork>();
  readonly #held = new Set<string>();
  /** Jobs whose last work failed, with the number of failures in a row; those with a timer wait for their next try. */
  readonly #failed = new Map<string, { count: number; timer: NodeJS.Timeout | null }>();
  #isClosed = false;

  constructor(options: StorageLaneOptions) {
    this.#options = options;
    this.#warn = fewLines(options.log.warn);
    options.probe.onReturn(() => this.#release());
  }

  /** Runs the work of a job, unless some of it runs or waits for its next try. Returns false while the object store is away. */
  add(jobId: string, run: StorageWork['run']): boolean {
    if (this.#options.probe.isAway()) this.#held.add(jobId);
    else if (!this.#failed.get(jobId)?.timer) this.#begin(jobId, { run, jobId });
    return !this.#options.probe.isAway();
  }

  /** Runs work that something else repeats later: it is dropped while the object store is away. */
  addOptional(name: string, run: StorageWork['run']): void {
    if (!this.#options.probe.isAway()) this.#begin(name, { run, jobId: null });
  }

  /** Forgets the failures of a job that needs the object store no more. */
  forget(jobId: string): void {
    clearTimeout(this.#failed.get(jobId)?.timer ?? undefined);
    this.#failed.delete(jobId);
    this.#held.delete(jobId);
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Drops what has not begun. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    for (const jobId of [...this.#failed.keys()]) this.forget(jobId);
  }

  #begin(name: string, work: StorageWork): void {
    if (this.#isClosed || this.#running.has(name)) return;
    this.#waiting.set(name, work);
    this.#fill();
  }

  #fill(): void {
    for (const [name, work] of this.#waiting) {
      if (this.#running.size >= maxRunning) return;
      this.#waiting.delete(name);
      const run = this.#run(work).finally(() => {
        this.#running.delete(name);
        this.#fill();
      });
      this.#running.set(name, run);
    }
  }

  async #run({ run, jobId }: StorageWork): Promise<void> {
    try {
      await run();
      if (jobId !== null) this.forget(jobId);
    } catch (error) {
      this.#warn('a call of the object store failed', { job: jobId, error });
      if (jobId !== null && !this.#isClosed) this.#tryLater(jobId);
      // Meanwhile this place stays taken: most likely the next call would fail, too.
      if (!(await this.#options.probe.check())) this.#holdWaiting();
    }
  }

  /** Each job whose work is held adds it again, so that the record says that the job is storing. */
  #holdWaiting(): void {
    const held = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { jobId } of held) if (jobId !== null) this.#options.again(jobId);
  }

  #tryLater(jobId: string): void {
    const count = (this.#failed.get(jobId)?.count ?? 0) + 1;
    const delays = { firstMs: this.#options.firstMs ?? firstMs, maxMs, hasJitter: true };
    const timer = setTimeout(
      () => {
        this.#failed.set(jobId, { count, timer: null });
        this.#options.again(jobId);
      },
      backoffMs(count, delays),
    );
    this.#failed.set(jobId, { count, timer });
  }

  #release(): void {
    const held = [...this.#held];
    this.#held.clear();
    for (const jobId of held) this.#options.again(jobId);
  }
}
