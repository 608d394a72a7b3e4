import type { Job } from '../../src/model/job.ts';
import { type NotedProgress, noteProgress } from '../../src/store/jobs/note-progress.ts';
import { type JobEnding, settleJob } from '../../src/store/jobs/settle-job.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { completed, holder, lead, startNext, theJob } from './record.ts';
import { until } from './until.ts';

const working: NotedProgress = { progress: 10, stage: 'fetch', speed_bytes: 1000, eta_seconds: 9 };

/** Submits jobs in milliseconds of their own: those of the same one stand in the order of their ids. */
export async function submitApart(count: number, submit: () => Promise<string>): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    ids.push(await submit());
    const submitted = Date.now();
    await until(() => Date.now() > submitted, 10, 'the next millisecond');
  }
  return ids;
}

/** Begins the first attempt of a job, as the controller does; jobs that wait before it are begun too. */
export async function beginJob(store: RecordStore, id: string): Promise<Job> {
  for (;;) {
    const job = await theJob(store, id);
    if (job.attempt > 0) return job;
    if ((await startNext(store)) === null) throw new Error(`the job ${id} may not start now`);
  }
}

/** Makes a job Running, and tells its progress. */
export async function runJob(store: RecordStore, id: string, told: Partial<NotedProgress> = {}): Promise<Job> {
  const job = await beginJob(store, id);
  await noteProgress(store, job, job.attempt, { ...working, ...told });
  return theJob(store, id);
}

/** Ends a job that runs, and one that waits after it has begun. */
export async function endJob(store: RecordStore, id: string, ending: JobEnding = completed): Promise<Job> {
  const job = await beginJob(store, id);
  await lead(store, holder);
  const { refused } = await settleJob(store, holder, job, ending);
  if (refused) throw new Error(`the job ${id} was not settled: ${refused}`);
  return theJob(store, id);
}
