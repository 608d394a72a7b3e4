import { keys } from '../keys.ts';
import type { Store } from '../script.ts';

/** A job that may have files in the object store. */
export interface KeptFile {
  readonly account: string;
  readonly job: string;
}

/** Files of jobs that ended before a moment, those that callers have removed, and what jobs without a result have left; a bounded number. */
export async function dueFiles(store: Store, before: number): Promise<KeptFile[]> {
  const members = (await store.connection.read(
    ['ZRANGEBYSCORE', keys.files, '-inf', String(before), 'LIMIT', '0', '100'],
    keys.files,
  )) as string[];
  return members.map((member) => {
    const [account = '', job = ''] = member.split('/');
    return { account, job };
  });
}

/** Forgets a file that is no longer in the object store. */
export async function dropFile(store: Store, { account, job }: KeptFile): Promise<void> {
  await store.connection.read(['ZREM', keys.files, `${account}/${job}`], keys.files);
}
