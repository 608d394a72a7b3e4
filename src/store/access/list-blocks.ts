import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';

/** Longer than any block (D38): one that would last longer is of a time before the clock of Redis went back. */
const maxBlockMs = 86_400_000 + 60_000;

export async function listBlocks(store: RecordStore): Promise<{ address: string; until: number }[]> {
  const now = store.clock.now();
  const range = [`(${now}`, String(now + maxBlockMs), 'WITHSCORES'];
  const found = pairs(await store.connection.read(['ZRANGEBYSCORE', keys.blocks, ...range]));
  return Object.entries(found).map(([address, until]) => ({ address, until: Number(until) }));
}
