import type { Log } from '../base/log.ts';
import type { Traces } from '../base/traces.ts';
import type { Job } from '../model/job.ts';
import { spansOfJob } from '../model/job-spans.ts';
import { readTraceparent } from '../model/trace-context.ts';
import { readStored } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';

/** Parts that record the spans of a job; `traces` is `null` where none are sent. */
interface TraceParts {
  readonly traces: Traces | null;
  readonly store: RecordStore;
}

/**
 * Records the spans of a job that has just ended, out of its record. Nothing waits for it, and a controller that dies meanwhile
 * leaves a trace without them.
 */
export function traceJob(
  { traces, store }: TraceParts,
  job: Pick<Job, 'id' | 'trace'>,
  settledFrom: number | null,
  log: Log,
): void {
  const context = readTraceparent(job.trace?.parent);
  if (traces === null || context === null) return;
  const record = async () => {
    const ended = await readStored(store, job.id);
    if (ended === null || ended.job.ended_at === null) return;
    for (const span of spansOfJob(context, { ...ended, settledFrom })) traces.record(span);
  };
  void record().catch((error) => log.debug('the job has no spans', { error }));
}
