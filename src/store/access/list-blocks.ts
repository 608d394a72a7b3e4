import { keys } from '../keys.ts';
import type { RecordStore } from '../script.ts';

/** Returns the blocked addresses, each with the end of its block. */
export async function listBlocks(store: RecordStore): Promise<{ address: string; until: number }[]> {
  const flat = (await store.connection.read([
    'ZRANGEBYSCORE',
    keys.blocks,
    `(${store.clock.now()}`,
    '+inf',
    'WITHSCORES',
  ])) as string[];
  const found: { address: string; until: number }[] = [];
  for (let n = 0; n + 1 < flat.length; n += 2) found.push({ address: String(flat[n]), until: Number(flat[n + 1]) });
  return found;
}
