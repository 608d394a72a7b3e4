import { keys } from './keys.ts';
import type { Store } from './script.ts';

/** Ids of the jobs of an account that have not ended, oldest first. */
export async function listOpen(store: Store, account: string): Promise<string[]> {
  return (await store.connection.read(['ZRANGE', keys.open(account), '0', '-1'], keys.open(account))) as string[];
}
