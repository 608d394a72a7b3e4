import { backoffMs } from '../base/backoff.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { shareRun } from '../base/single-flight.ts';
import type { ObjectStore } from '../objects/object-store.ts';

interface StorageProbeOptions {
  readonly objects: Pick<ObjectStore, 'see' | 'keep' | 'remove'>;
  readonly metrics: Metrics;
  readonly log: Log;
  /** The first delay between two probes; each further one is longer. */
  readonly firstMs?: number;
}

const probePrefix = 'probe/';
/** No object has this key: an object store that says so works. */
const probeKey = `${probePrefix}absent`;
/** This object is written, and removed at once, while a full or read-only object store may take no file. */
const trialKey = `${probePrefix}trial`;
const firstMs = 1_000;
const maxMs = 10_000;

/**
 * Finds out whether the object store as a whole answers. After a failed call one probe asks it again and again for
 * everyone, so that an object store which hangs is not asked by every job that waits for it.
 */
export class StorageProbe {
  readonly #options: StorageProbeOptions;
  readonly #returned = new Set<() => void>();
  #isAway = false;
  #isDoubted = false;
  #isClosed = false;
  #failures = 0;
  readonly #asking = shareRun(() => this.#ask());
  #timer: NodeJS.Timeout | undefined;
  #trialTimer: NodeJS.Timeout | undefined;

  constructor(options: StorageProbeOptions) {
    this.#options = options;
    options.metrics.object_store_ready.set(1);
  }

  isAway(): boolean {
    return this.#isAway;
  }

  /**
   * Returns false from a file that a worker could not store, for as long as it tries, until a trial object could be written. A store that is
   * merely away may be back before a download needs it.
   */
  takesFiles(): boolean {
    return !this.#isDoubted;
  }

  /** Called when a worker could not store its file. */
  doubt(): void {
    if (this.#isDoubted || this.#isClosed) return;
    this.#isDoubted = true;
    this.#tell(false);
    void this.#tryToWrite(1);
  }

  onReturn(listener: () => void): void {
    this.#returned.add(listener);
  }

  /** Asks after a failed call. Returns true when the object store answers: then only that call failed. */
  check(): Promise<boolean> {
    clearTimeout(this.#timer);
    return this.#asking.run();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#trialTimer);
  }

  async #ask(): Promise<boolean> {
    const { objects, log } = this.#options;
    try {
      await objects.see(probeKey);
      this.#failures = 0;
      if (!this.#isAway) return true;
      this.#isAway = false;
      this.#tell(!this.#isDoubted);
      log.info('the object store answers again');
      for (const listener of this.#returned) listener();
      return true;
    } catch (error) {
      if (!this.#isAway) log.warn('the object store does not answer: what needs it waits', { error });
      this.#isAway = true;
      this.#tell(false);
      this.#failures += 1;
      this.#timer = this.#later(this.#failures, () => this.check());
      return false;
    }
  }

  async #tryToWrite(times: number): Promise<void> {
    const { objects, log } = this.#options;
    // One that cannot be removed says nothing of files that are to be stored.
    const remove = () => objects.remove(probePrefix).catch(() => {});
    try {
      // `keep` may find one that was left behind good enough, although it could write none.
      await remove();
      await objects.keep(trialKey, Buffer.from('trawl'));
      await remove();
      this.#isDoubted = false;
      this.#tell(!this.#isAway);
      if (times > 1) log.info('the object store takes files again');
    } catch (error) {
      if (times === 1) log.error('the object store takes no file: no download begins', { error });
      this.#trialTimer = this.#later(times, () => this.#tryToWrite(times + 1));
    }
  }

  #tell(isReady: boolean): void {
    this.#options.metrics.object_store_ready.set(isReady ? 1 : 0);
  }

  #later(failures: number, again: () => Promise<unknown>): NodeJS.Timeout | undefined {
    if (this.#isClosed) return undefined;
    const delays = { firstMs: this.#options.firstMs ?? firstMs, maxMs, hasJitter: true };
    return setTimeout(() => void again(), backoffMs(failures, delays));
  }
}
