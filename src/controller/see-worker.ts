import { isEnded, type Job } from '../model/job.ts';
import { hasOpenAttempt, type Seen } from '../model/next.ts';
import { attemptNameOf, type Runner } from '../runners/runner.ts';

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
