/** How long Jobs wait for their pods, in milliseconds of a clock that never goes back. */
export interface Waits {
  /** A Job or pod of an attempt has come or gone. */
  note(attempt: string, hasJob: boolean, hasPod: boolean): void;
  /**
   * How far the cluster has come with making pods: Jobs that were seen first before that have theirs. There is no end to it while
   * none comes late, and no beginning while they come late but as fast as the machine can.
   */
  reached(): number;
}

/** A pod that comes so long after its Job is late. */
const lateMilliseconds = 250;
/** So long after a late pod others are expected to be late: that it came shows that they come. */
const behindMilliseconds = 2_000;
/** The controller of Jobs may write 20 times a second unless its cluster says otherwise, and twice for each pod. */
const limitedPods = 20;
const limitedMilliseconds = 2_000;

/** Knows of none. */
export function makeWaits(now: () => number): Waits {
  const since = new Map<string, number>();
  const latest: number[] = [];
  let lateAt = Number.NEGATIVE_INFINITY;
  const came = (began: number) => {
    if (now() - began >= lateMilliseconds) lateAt = now();
    if (latest.push(now()) > limitedPods) latest.shift();
  };
  return {
    note(attempt, hasJob, hasPod) {
      const began = since.get(attempt);
      if (began !== undefined && hasPod) came(began);
      if (!hasJob || hasPod) since.delete(attempt);
      else if (began === undefined) since.set(attempt, now());
    },
    reached() {
      // In the order in which they were seen first.
      const oldest = since.values().next().value;
      if (oldest === undefined || now() - lateAt >= behindMilliseconds) return Number.POSITIVE_INFINITY;
      const isLimited = now() - (latest[0] ?? now()) >= limitedMilliseconds;
      return isLimited ? oldest : Number.NEGATIVE_INFINITY;
    },
  };
}
