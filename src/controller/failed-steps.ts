import { fewLines } from '../base/few-lines.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { onceAMinute } from '../base/once-a-minute.ts';
import { StartDelayed } from '../runners/runner.ts';
import { DamagedRecord } from './attempt-workers.ts';

/**
 * Returns what notes a step of a job that failed; a damaged record is counted each time, and logged once for each job. A delayed start is
 * none: its caller reads the reason, and the age of what waits is measured.
 */
export function noteFailedSteps({
  metrics,
  log,
}: {
  readonly metrics: Pick<Metrics, 'reconcile_errors_total'>;
  readonly log: Log;
}) {
  const warnOfFailure = fewLines(log.warn);
  const warnOfDelay = onceAMinute((reason: string) => log.warn('jobs wait for their start', { reason }));
  const warnOfDamage = fewLines(log.error);
  const named = new Set<string>();
  return (jobId: string, error: unknown): void => {
    if (error instanceof StartDelayed) {
      warnOfDelay(error.reason);
      return;
    }
    metrics.reconcile_errors_total.inc();
    if (error instanceof DamagedRecord) {
      const fields = { job: jobId, unreadable: error.unreadable };
      // One that is left out of a full minute is named in a later one: no list names the damaged jobs.
      if (!named.has(jobId) && warnOfDamage('the record of a job is damaged: cancel the job', fields)) named.add(jobId);
      return;
    }
    warnOfFailure('a step of the job failed: it is tried again', { job: jobId, error });
  };
}
