import { keys } from '../keys.ts';
import { type RecordStore, readDue } from '../script.ts';
import { longId, shortId } from '../short-id.ts';

export interface KeptFile {
  readonly job: string;
}

/** Returns up to 100 files: of jobs that ended before a moment, removed by callers, or left by jobs without a result. */
export async function dueFiles(store: RecordStore, before: number): Promise<KeptFile[]> {
  return (await readDue(store, keys.files, before)).map((member) => ({ job: longId(member) }));
}

/** Forgets a file that is no longer in the object store. */
export async function dropFile(store: RecordStore, { job }: KeptFile): Promise<void> {
  await store.connection.send(['ZREM', keys.files, shortId(job)]);
}

/** Removes a file that could not be removed only when other files of that time are due. */
export async function postponeFile(store: RecordStore, { job }: KeptFile, ended: number): Promise<void> {
  await store.connection.send(['ZADD', keys.files, 'XX', String(ended), shortId(job)]);
}
