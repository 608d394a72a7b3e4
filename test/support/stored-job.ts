import { readStored } from '../../src/store/jobs/read-job.ts';
import type { RecordStore } from '../../src/store/script.ts';

/** Returns the beginning and the end of each attempt of a job, in their order. */
export async function readAttempts(store: RecordStore, jobId: string) {
  return (await readStored(store, jobId))?.attempts ?? [];
}

export async function readWebhook(store: RecordStore, jobId: string) {
  return (await readStored(store, jobId))?.webhook ?? null;
}
