import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';

/** A job that may have files in the object store. */
export interface KeptFile {
  readonly account: string;
  readonly job: string;
}

/** Files of jobs that ended before a moment, those that callers have removed, and what jobs without a result have left; a bounded number. */
export async function dueFiles(store: RecordStore, before: number): Promise<KeptFile[]> {
  const members = (await store.connection.read([
    'ZRANGEBYSCORE',
    keys.files,
    '-inf',
    String(before),
    'LIMIT',
    '0',
    '100',
  ])) as string[];
  return members.map((member) => {
    const [account = '', job = ''] = member.split('/');
    return { account, job };
  });
}

/** Forgets a file that is no longer in the object store. */
export async function dropFile(store: RecordStore, { account, job }: KeptFile): Promise<void> {
  await store.connection.send(['ZREM', keys.files, `${account}/${job}`]);
}
