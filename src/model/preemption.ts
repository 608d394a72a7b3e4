export interface WorkerShares {
  readonly slots: number;
  /** Slots that only accounts without a running job may take. */
  readonly kept: number;
  /** Without kept slots: longest wait of an account that has no worker while another one has them all. */
  readonly maxWaitMs: number;
}

export interface ActiveJob {
  readonly id: string;
  readonly account: string;
  /** When it was given the slot, in milliseconds. */
  readonly since: number;
  readonly attempt: number;
  /**
   * `free`: it may be interrupted. `leaving`: that has begun. `bound`: it was interrupted for another account before.
   * `recording`: it records a live source, which cannot be repeated. `idle`: its worker has not started yet, or is done.
   */
  readonly hold: 'free' | 'leaving' | 'bound' | 'recording' | 'idle';
  /** When its first recording began, in milliseconds. */
  readonly recordedAt: number | null;
}

/** A recording that has lasted longer is interrupted for nobody: what it has would be lost. */
export const maxLostRecordingMs = 60_000;

/** One or two workers are too few to keep one of them for accounts that may never come. */
const minWorkersToKeep = 3;

export function sharesOf(slots: number, reserved: number, maxWaitSeconds: number): WorkerShares {
  return { slots, kept: slots < minWorkersToKeep ? 0 : reserved, maxWaitMs: maxWaitSeconds * 1000 };
}

/**
 * Returns the job that is interrupted for an account that has waited too long without a worker: the youngest one of the
 * account that holds most slots. An account with one of several slots loses it to nobody. `null` when none must be interrupted.
 */
export function choosePreempted(active: readonly ActiveJob[], slots: number): ActiveJob | null {
  if (active.length < slots || active.some(({ hold }) => hold === 'leaving')) return null;
  const held = new Map<string, number>();
  for (const { account } of active) held.set(account, (held.get(account) ?? 0) + 1);
  const heldBy = ({ account }: ActiveJob) => held.get(account) ?? 0;
  const least = Math.min(2, slots);
  const found = active.filter((job) => job.hold === 'free' && heldBy(job) >= least);
  return found.toSorted((a, b) => heldBy(b) - heldBy(a) || b.since - a.since)[0] ?? null;
}

/**
 * Returns the recording that is interrupted because it has only just begun, and since then one account holds every slot with
 * jobs that no other account could get the place of. `null` when there is none, and of a single slot.
 */
export function chooseSurplusRecording(active: readonly ActiveJob[], slots: number, now: number): ActiveJob | null {
  const [first] = active;
  if (slots < 2 || active.length < slots) return null;
  const keepsIt = (job: ActiveJob) =>
    job.account === first?.account && (job.hold === 'bound' || job.hold === 'recording');
  if (!active.every(keepsIt)) return null;
  const begun = (job: ActiveJob) => job.recordedAt ?? Number.NEGATIVE_INFINITY;
  const recent = active.filter((job) => job.hold === 'recording' && now - begun(job) < maxLostRecordingMs);
  return recent.toSorted((a, b) => begun(b) - begun(a))[0] ?? null;
}
