import { isEnded, type Job } from '../model/job.ts';
import { hasOpenAttempt, type Seen } from '../model/next.ts';

/** A worker ends within seconds after its verdict: one that has not by then hangs, or its node is dead. */
const maxLeaveMs = 60_000;

/** Jobs whose worker has ended and that are not settled yet, with the time when this controller first saw its end. */
export class UnsettledJobs {
  readonly #since = new Map<string, number>();

  /** Returns the earliest of these times, `null` for none. */
  oldest(): number | null {
    return this.#since.size === 0 ? null : Math.min(...this.#since.values());
  }

  /** A storing job counts from `storing_since`, which an earlier leader may have set. A time after `now` is one before the clock went back. */
  update(job: Job, seen: Seen, now: number): void {
    const hasEnded = seen.is === 'ended' || job.verdict !== null || job.storing_since !== null;
    if (isEnded(job.status) || !hasOpenAttempt(job) || !hasEnded) this.#since.delete(job.id);
    else this.#since.set(job.id, Math.min(now, job.storing_since ?? this.#since.get(job.id) ?? now));
  }

  /** Returns what was seen of a worker, or its verdict as its end when it has not ended a minute after that. */
  endOf({ id, verdict }: Job, seen: Seen, now: number): Seen {
    const isHung = seen.is === 'running' && verdict !== null && now - (this.#since.get(id) ?? now) >= maxLeaveMs;
    return isHung ? { is: 'ended', outcome: verdict } : seen;
  }

  delete(jobId: string): void {
    this.#since.delete(jobId);
  }

  /** Forgets jobs that are not active: a step that began before Redis went away may have noted one that another step has settled. */
  keepOnly(active: readonly string[]): void {
    const ids = new Set(active);
    for (const jobId of this.#since.keys()) if (!ids.has(jobId)) this.#since.delete(jobId);
  }

  clear(): void {
    this.#since.clear();
  }
}
