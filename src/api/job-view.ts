import type { Job } from '../model/job.ts';
import { jobJson, type QueuePosition, queueJson } from '../model/job-json.ts';
import { readJob, readPositions } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';

/** Returns a job as a caller sees it, its link signed now. */
export type ViewJob = (job: Job, position: QueuePosition | null) => Record<string, unknown>;

interface JobViewOptions {
  readonly now: () => number;
  readonly fileHours: number;
  /** Returns a signed link to a job's file, good until then; `null` when it has none. */
  readonly linkOf: (job: Job, until: number) => string | null;
  readonly averageSeconds: (endpoint: Job['endpoint']) => number | null;
}

const taken: QueuePosition = { before: null, running: 0, concurrency: null };

export function makeJobView({ now, fileHours, linkOf, averageSeconds }: JobViewOptions): ViewJob {
  return (job, position) => {
    const expires_at = job.ended_at === null ? null : job.ended_at + fileHours * 3_600_000;
    const link = expires_at === null ? null : linkOf(job, expires_at);
    const queue = queueJson({ ...(position ?? taken), stage: job.stage }, averageSeconds(job.endpoint));
    return jobJson(job, { now: now(), link, expires_at, queue });
  };
}

/** Returns one of the account's own jobs; `null` for an unknown job and for one of another account (D14). */
export async function readOwnJob(store: RecordStore, accountId: string, jobId: string): Promise<Job | null> {
  const job = await readJob(store, jobId);
  return job?.account === accountId ? job : null;
}

/** Returns jobs of one account as a caller sees them, queued ones with their position: the one that is `known`, or as it is read now. */
export async function viewJobs(
  store: RecordStore,
  viewJob: ViewJob,
  accountId: string,
  jobs: readonly Job[],
  known: ReadonlyMap<string, QueuePosition> = new Map(),
) {
  const queued = jobs.filter(({ id, status }) => status === 'QueuedJob' && !known.has(id)).map(({ id }) => id);
  const positions = await readPositions(store, accountId, queued);
  return jobs.map((job) => viewJob(job, known.get(job.id) ?? positions[queued.indexOf(job.id)] ?? null));
}
