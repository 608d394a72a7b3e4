import { keys } from './keys.ts';
import type { Store } from './script.ts';

/** Ids of the jobs of an account that have not ended, oldest first. */
export async function listOpen(store: Store, account: string): Promise<string[]> {
  return (await store.connection.read(['ZRANGE', keys.open(account), '0', '-1'], keys.open(account))) as string[];
}

/** Jobs that were taken and have not ended. */
export async function listActive(store: Store): Promise<string[]> {
  return (await store.connection.read(['ZRANGE', keys.active, '0', '-1'], keys.active)) as string[];
}

/** Jobs that wait since before a moment, a bounded number of each account. */
export async function listOverdue(store: Store, before: number): Promise<string[]> {
  const accounts = (await store.connection.read(['HVALS', keys.slugs], keys.slugs)) as string[];
  const found = await store.connection.batch(
    accounts.map((account) => {
      const key = keys.queue(account);
      return { key, command: ['ZRANGEBYSCORE', key, '-inf', String(before), 'LIMIT', '0', '100'] };
    }),
  );
  return found.flat() as string[];
}
