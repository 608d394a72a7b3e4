import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

/** Returns the blocked addresses, each with the end of its block. */
export async function listBlocks(store: RecordStore): Promise<{ address: string; until: number }[]> {
  const range = [`(${store.clock.now()}`, '+inf', 'WITHSCORES'];
  const found = pairs(await store.connection.read(['ZRANGEBYSCORE', keys.blocks, ...range]));
  return Object.entries(found).map(([address, until]) => ({ address, until: Number(until) }));
}
