import type { Job } from '../model/job.ts';
import { shownJob } from '../model/job-json.ts';
import { queueOf } from '../model/queue-position.ts';
import { type Place, readJob, readPlaces } from '../store/jobs/read-job.ts';
import type { RecordStore } from '../store/script.ts';

/** Shows a job of the record as a caller sees it, its link signed now. */
export type Show = (job: Job, place: Place | null) => Record<string, unknown>;

export interface ShowOptions {
  readonly now: () => number;
  readonly fileMilliseconds: number;
  /** A signed link to a job's file, good until then; `null` when it has none. */
  readonly linkOf: (job: Job, until: number) => string | null;
  readonly averageSeconds: (endpoint: Job['endpoint']) => number | null;
}

export function makeShow({ now, fileMilliseconds, linkOf, averageSeconds }: ShowOptions): Show {
  return (job, place) => {
    const expires_at = job.ended_at === null ? null : job.ended_at + fileMilliseconds;
    const link = expires_at === null ? null : linkOf(job, expires_at);
    const queue = queueOf({ ...(place ?? taken), stage: job.stage }, averageSeconds(job.endpoint));
    return shownJob(job, { now: now(), link, expires_at, queue });
  };
}

const taken: Place = { before: null, running: 0, concurrency: null };

/** One of the account's own jobs, or `null`: what another account has is not there (D14). */
export async function readOwn(store: RecordStore, account: string, id: string): Promise<Job | null> {
  const job = await readJob(store, id);
  return job?.account === account ? job : null;
}

/** Shows jobs of one account, those that wait with their place. */
export async function showAll(store: RecordStore, show: Show, account: string, jobs: readonly Job[]) {
  const waiting = jobs.filter((job) => job.status === 'QueuedJob').map((job) => job.id);
  const places = await readPlaces(store, account, waiting);
  return jobs.map((job) => show(job, places[waiting.indexOf(job.id)] ?? null));
}
