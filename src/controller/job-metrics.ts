import type { Metrics } from '../base/metrics.ts';
import type { Job } from '../model/job.ts';
import { endOf, hasOpenAttempt, type JobEnd, type Step } from '../model/next.ts';
import { siteOf } from '../model/source-site.ts';

type Counts = Extract<Step, { readonly do: 'retry' }>['counts'];

/** An attempt that trawl itself ended for another account is no interruption, which operators look for in nodes and memory. */
export function countRetriedAttempt(
  { attempts_total }: Pick<Metrics, 'attempts_total'>,
  { attempt, preempted }: Pick<Job, 'attempt' | 'preempted'>,
  counts: Counts,
): void {
  const interruption = preempted === attempt ? 'preempted' : 'interrupted';
  attempts_total.inc({ class: counts === 'failure' ? 'failed' : interruption });
}

/** Every other stopped attempt was counted when it ended. */
export function countCancelledAttempt({ attempts_total }: Pick<Metrics, 'attempts_total'>, job: Job): void {
  if (job.error_code === 'cancelled' && hasOpenAttempt(job)) attempts_total.inc({ class: 'cancelled' });
}

export function countSettledJob(
  metrics: Metrics,
  job: Job,
  { end, balance, now }: { readonly end: JobEnd; readonly balance: string; readonly now: number },
): void {
  countEnd(metrics, job, end, now);
  metrics.source_outcomes_total.inc({ site: siteOf(job.args.query), outcome: end.success ? 'completed' : 'failed' });
  if (hasOpenAttempt(job)) metrics.attempts_total.inc({ class: classOf(end) });
  if (end.success) metrics.charges_total.inc({ endpoint: job.endpoint, balance });
  if (balance === 'overdraft') metrics.overdrafts_total.inc();
  if (end.code === 'unclassified') metrics.unclassified_failures_total.inc();
}

/** For the caller that cancelled the job; its attempt is counted by the controller that stops its worker. */
export function countCancelledJob(metrics: Metrics, job: Job, now: number): void {
  countEnd(metrics, job, endOf('cancelled'), now);
}

function countEnd(metrics: Metrics, job: Job, { success, code, blame }: JobEnd, now: number): void {
  const { endpoint } = job;
  metrics.jobs_total.inc({ endpoint, outcome: success ? 'completed' : 'failed', code: code ?? '', blame: blame ?? '' });
  // How long a job would have waited is not known of one that its caller cancelled in the queue: a batch of them would hide all others.
  if (code === 'cancelled' && job.started_at === null) return;
  for (const [stage, ms] of listStages(job, now)) metrics.job_seconds.observe({ endpoint, stage }, ms / 1000);
}

/** The last of too many interruptions ends the job with `worker_lost`, which no failure has. */
function classOf({ success, code }: JobEnd): 'done' | 'failed' | 'interrupted' {
  if (success) return 'done';
  return code === 'worker_lost' ? 'interrupted' : 'failed';
}

/** `work` is every attempt and the waits between them. */
function listStages({ created_at, started_at, storing_since }: Job, now: number): [stage: string, ms: number][] {
  const begun = started_at ?? now;
  const stored = storing_since ?? now;
  const stages: [string, number][] = [['queue', begun - created_at]];
  if (started_at !== null) stages.push(['work', stored - begun]);
  if (storing_since !== null) stages.push(['storage', now - stored]);
  return stages.map(([stage, ms]) => [stage, Math.max(0, ms)]);
}
