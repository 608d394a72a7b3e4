// Gain: 8.2 instead of 4.9 jobs settled a second at a cluster's default limits (`make bench BENCH=cluster` has its row).

import { backoffMs } from '../../base/backoff.ts';
import type { Log } from '../../base/log.ts';
import { type AttemptCleanup, type Leftovers, objectsOf } from './cleanup.ts';
import type { ClusterState } from './cluster-state.ts';
import { isTerminal } from './judge-attempt.ts';

interface DeferredCleanupOptions {
  readonly immediate: AttemptCleanup;
  readonly state: Pick<ClusterState, 'hide'>;
  readonly watermark: Pick<PodWatermark, 'value'>;
  /** True while our own requests wait for the rate limit: then cleanup later would only keep more objects. */
  readonly isExhausted: () => boolean;
  /** True where Kueue counts a Job against a quota until it is gone. */
  readonly hasQueue: boolean;
  /** Called with an attempt whose postponed cleanup failed, so that the controller looks at it again. */
  readonly onFailure: (attemptName: string) => void;
  readonly log: Log;
  readonly maxDelayMs?: number;
}

const maxPostponed = 1_000;
const defaultMaxDelayMs = 120_000;
const checkMs = 500;
const maxAtOnce = 8;
/** Pauses after failures in a row: of a dead admission webhook the cluster was asked 40 times a second. */
const pauses = { firstMs: 1_000, maxMs: 30_000 };
/** The Job controller returns to a Job one second after its pod ended, or after a short pod began: cleanup comes shortly before. */
const jobTurnMs = 600;

/**
 * Postpones the cleanup of finished attempts while new Jobs wait for their pods. By default the Job controller of Kubernetes writes 20
 * times a second, in the order in which Jobs became due: twice for a new pod, and for a finished one three times, or once when we
 * have removed it before. How a finished attempt ended is in the record already, so new pods go first. At most eight steps wait for a removal,
 * and eight removals run beside them: an admission webhook of the cluster may hold up each change for 30 s.
 */
export class DeferredCleanup implements AttemptCleanup {
  readonly #options: DeferredCleanupOptions;
  /** In the order of their ends. */
  readonly #postponed = new Map<string, { readonly leftovers: Leftovers; readonly since: number }>();
  readonly #removing = new Set<string>();
  #immediateRemovals = 0;
  #failures = 0;
  /** No removal begins before, except of a worker that still runs or may still start: that of a cancelled job would go on for as long. */
  #pausedUntil = Number.NEGATIVE_INFINITY;
  readonly #timer: NodeJS.Timeout;

  constructor(options: DeferredCleanupOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#removeDue(), checkMs);
  }

  async remove(attemptName: string, leftovers: Leftovers): Promise<void> {
    const { state } = this.#options;
    const since = this.#mayStay(leftovers) ? performance.now() : Number.NEGATIVE_INFINITY;
    const isFull = this.#postponed.size >= maxPostponed;
    const isHeld = this.#isBusy() || (this.#isPaused() && !isWorking(leftovers));
    if (isFull || (this.#isDue(since) && !isHeld)) {
      this.#immediateRemovals++;
      await this.#removeAtOnce(attemptName, leftovers).finally(() => {
        this.#immediateRemovals--;
      });
      return;
    }
    this.#postponed.set(attemptName, { leftovers, since });
    state.hide(objectsOf(leftovers), Number.POSITIVE_INFINITY);
  }

  isPostponed(attemptName: string): boolean {
    return this.#postponed.has(attemptName);
  }

  countPostponed(): number {
    return this.#postponed.size;
  }

  /** Leaves what is postponed in the cluster: the next full pass of the leading controller removes it. */
  close(): void {
    clearInterval(this.#timer);
    this.#postponed.clear();
  }

  /** True when every pod ended by itself and no Kueue quota is held. */
  #mayStay({ pods }: Leftovers): boolean {
    const haveEnded = pods.every((pod) => isTerminal(pod) && pod.deletedAt === null);
    return !this.#options.hasQueue && pods.length > 0 && haveEnded;
  }

  #isDue(since: number): boolean {
    const { watermark, isExhausted, maxDelayMs = defaultMaxDelayMs } = this.#options;
    const isLongest = performance.now() - since >= maxDelayMs;
    return isLongest || isExhausted() || watermark.value() >= since + jobTurnMs;
  }

  #isPaused(): boolean {
    return performance.now() < this.#pausedUntil;
  }

  #isBusy(): boolean {
    return this.#removing.size + this.#immediateRemovals >= maxAtOnce && !this.#options.isExhausted();
  }

  #removeDue(): void {
    if (this.#isPaused()) return;
    for (const [attemptName, { leftovers, since }] of this.#postponed) {
      if (this.#removing.size >= maxAtOnce) return;
      if (this.#isDue(since) && !this.#removing.has(attemptName)) void this.#removeNow(attemptName, leftovers);
    }
  }

  async #removeAtOnce(attemptName: string, leftovers: Leftovers): Promise<void> {
    try {
      await this.#options.immediate.remove(attemptName, leftovers);
      this.#failures = 0;
      this.#pausedUntil = Number.NEGATIVE_INFINITY;
    } catch (error) {
      // Removals that fail together count as one failure.
      if (!this.#isPaused()) this.#pausedUntil = performance.now() + backoffMs(++this.#failures, pauses);
      throw error;
    }
  }

  async #removeNow(attemptName: string, leftovers: Leftovers): Promise<void> {
    const { onFailure, log } = this.#options;
    this.#removing.add(attemptName);
    try {
      await this.#removeAtOnce(attemptName, leftovers);
      this.#postponed.delete(attemptName);
    } catch (error) {
      this.#postponed.delete(attemptName);
      log.warn('the postponed cleanup of an attempt failed', { attempt: attemptName, error });
      onFailure(attemptName);
    }
    this.#removing.delete(attemptName);
    this.#removeDue();
  }
}

/** True while a worker may run that the cluster was not told to stop, or may get its pod, which a suspended Job does not. */
function isWorking({ job, pods }: Leftovers): boolean {
  const isOpen = job !== null && job.ending === null && job.deletedAt === null;
  const mayGetPod = pods.length === 0 && isOpen && !job.isSuspended;
  return mayGetPod || pods.some((pod) => !isTerminal(pod) && pod.deletedAt === null);
}

/** A pod that appears so long after its Job is late. */
const lateMs = 250;
/** After a late pod, later ones are expected for this long to be late as well. */
const expectLateMs = 2_000;
/** Slower than 20 pods in 2 s means that the limit of the Job controller, 20 writes a second and two for each pod, is the bottleneck. */
const limitedPods = 20;
const limitedMs = 2_000;

/** Pod-creation watermark (`performance.now`): every Job seen before it already has its pod. */
export class PodWatermark {
  readonly #now: () => number;
  /** When each Job without a pod was seen first, oldest first. */
  readonly #waitingSince = new Map<string, number>();
  readonly #podsAt: number[] = [];
  #lateAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  count(attemptName: string, hasJob: boolean, hasPod: boolean): void {
    const since = this.#waitingSince.get(attemptName);
    if (since !== undefined && hasPod) {
      if (this.#now() - since >= lateMs) this.#lateAt = this.#now();
      if (this.#podsAt.push(this.#now()) > limitedPods) this.#podsAt.shift();
    }
    if (!hasJob || hasPod) this.#waitingSince.delete(attemptName);
    else if (since === undefined) this.#waitingSince.set(attemptName, this.#now());
  }

  /** Returns +Infinity when no pod is late, and -Infinity when pods are late only because the CPU, not the API limit, is the bottleneck. */
  value(): number {
    const oldest = this.#waitingSince.values().next().value;
    if (oldest === undefined || this.#now() - this.#lateAt >= expectLateMs) return Number.POSITIVE_INFINITY;
    const isLimited = this.#now() - (this.#podsAt[0] ?? this.#now()) >= limitedMs;
    return isLimited ? oldest : Number.NEGATIVE_INFINITY;
  }
}
