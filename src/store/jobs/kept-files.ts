import { keys } from '../keys.ts';
import { type RecordStore, readDue } from '../script.ts';

export interface KeptFile {
  readonly account: string;
  readonly job: string;
}

/** Returns up to 100 files: of jobs that ended before a moment, removed by callers, or left by jobs without a result. */
export async function dueFiles(store: RecordStore, before: number): Promise<KeptFile[]> {
  return (await readDue(store, keys.files, before)).map((member) => {
    const [account = '', job = ''] = member.split('/');
    return { account, job };
  });
}

/** Forgets a file that is no longer in the object store. */
export async function dropFile(store: RecordStore, { account, job }: KeptFile): Promise<void> {
  await store.connection.send(['ZREM', keys.files, `${account}/${job}`]);
}
