import { backoffMs } from '../base/backoff.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { shareRun } from '../base/single-flight.ts';
import type { ObjectStore } from '../objects/object-store.ts';

interface StorageProbeOptions {
  readonly objects: Pick<ObjectStore, 'see'>;
  readonly metrics: Metrics;
  readonly log: Log;
  /** The first delay between two probes; each further one is longer. */
  readonly firstMs?: number;
}

/** No object has this key: an object store that says so works. */
const probeKey = 'probe/absent';
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
  #isClosed = false;
  #failures = 0;
  readonly #asking = shareRun(() => this.#ask());
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StorageProbeOptions) {
    this.#options = options;
    options.metrics.object_store_ready.set(1);
  }

  isAway(): boolean {
    return this.#isAway;
  }

  /** Calls the listener each time when the object store answers again. */
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
  }

  async #ask(): Promise<boolean> {
    const { objects, metrics, log } = this.#options;
    try {
      await objects.see(probeKey);
      this.#failures = 0;
      if (!this.#isAway) return true;
      this.#isAway = false;
      metrics.object_store_ready.set(1);
      log.info('the object store answers again');
      for (const listener of this.#returned) listener();
      return true;
    } catch (error) {
      if (!this.#isAway) log.warn('the object store does not answer: what needs it waits', { error });
      this.#isAway = true;
      metrics.object_store_ready.set(0);
      this.#askLater();
      return false;
    }
  }

  #askLater(): void {
    if (this.#isClosed) return;
    this.#failures += 1;
    const delays = { firstMs: this.#options.firstMs ?? firstMs, maxMs, hasJitter: true };
    this.#timer = setTimeout(() => void this.check(), backoffMs(this.#failures, delays));
  }
}
