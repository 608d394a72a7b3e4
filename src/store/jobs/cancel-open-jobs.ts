import type { RecordStore } from '../script.ts';
import { cancelJob } from './cancel-job.ts';
import { mendJob } from './mend-job.ts';
import { listOpen } from './open-work.ts';
import { readJob } from './read-job.ts';

export async function cancelOpenJobs(store: RecordStore, accountId: string): Promise<number> {
  let cancelled = 0;
  for (const id of await listOpen(store, accountId)) {
    let job = await readJob(store, id);
    if (job?.account !== accountId) {
      await mendJob(store, id);
      job = await readJob(store, id);
    }
    if (job !== null && (await cancelJob(store, job)).done) cancelled++;
  }
  return cancelled;
}
