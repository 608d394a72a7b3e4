import type { Traces } from '../base/traces.ts';
import type { Job } from '../model/job.ts';
import { spansOfJob } from '../model/job-spans.ts';
import { readTraceparent } from '../model/trace-context.ts';
import { readStored } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';

/**
 * Records the spans of a job that has just ended, out of its record; `job` is as it was before, with its stages. Nothing waits
 * for it, and a controller that dies meanwhile leaves a trace without them.
 */
export async function traceJob(
  traces: Traces,
  store: RecordStore,
  job: Pick<Job, 'id' | 'trace'>,
  settledFrom: number | null,
): Promise<void> {
  const context = readTraceparent(job.trace?.parent);
  if (context === null) return;
  const ended = await readStored(store, job.id);
  if (ended === null || ended.job.ended_at === null) return;
  for (const span of spansOfJob(context, { ...ended, stages: job.trace?.stages ?? [], settledFrom }))
    traces.record(span);
}
