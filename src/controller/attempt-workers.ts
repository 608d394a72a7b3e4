import { isEnded, type Job } from '../model/job.ts';
import { hasOpenAttempt, type Seen } from '../model/next.ts';
import { attemptNameOf, attemptNumberOf, type Runner } from '../runners/runner.ts';
import { readJob } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';

/** Sees the worker of a job's attempt. Once that is over, `list` finds leftovers without a request to the cluster. */
export async function seeWorker(runner: Runner, job: Job): Promise<Seen> {
  const name = attemptNameOf(job.id, job.attempt);
  if (job.attempt === 0) return { is: 'absent' };
  const isOver = isEnded(job.status) || !hasOpenAttempt(job);
  if (isOver && !(await runner.list(job.id)).includes(name)) return { is: 'absent' };
  return runner.see(name);
}

/** Returns true when no worker runs any more. */
export function isGone({ is }: Seen): boolean {
  return is === 'ended' || is === 'absent';
}

/** Stops workers of every attempt but the last one, and every worker of a job that is not in the record. */
export async function stopOtherAttempts(
  { store, runners }: { readonly store: RecordStore; readonly runners: readonly Runner[] },
  jobId: string,
  job: Job | null,
): Promise<void> {
  const last = job?.attempt ?? Number.POSITIVE_INFINITY;
  for (const runner of runners) {
    const names = await runner.list(jobId);
    const newest = Math.max(-1, ...names.map(attemptNumberOf));
    // An attempt is recorded before its worker is made: one that a second look does not find was lost with a restored backup.
    const known = newest > last ? ((await readJob(store, jobId))?.attempt ?? -1) : newest;
    const others = names.filter((name) => attemptNumberOf(name) < last || attemptNumberOf(name) > known);
    await Promise.all(others.map((name) => runner.stop(name)));
  }
}
