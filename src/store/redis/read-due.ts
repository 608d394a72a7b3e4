import type { Connection } from './connection.ts';

interface DueReader {
  readonly connection: Pick<Connection, 'read'>;
  readonly clock: { now(): number };
}

/**
 * Returns up to 100 members of a sorted set whose score is from `from` to `until`, lowest first, after the first `skipped`; `(`
 * before `until` excludes it.
 */
export function readDue(
  { connection }: Pick<DueReader, 'connection'>,
  key: string,
  until: number | string,
  skipped = 0,
  from: number | '-inf' = '-inf',
): Promise<string[]> {
  return connection.read(['ZRANGEBYSCORE', key, String(from), String(until), 'LIMIT', String(skipped), '100']);
}

/**
 * Returns up to 100 members of a sorted set that are due now, and up to 100 that would wait longer than any does: their time was written
 * before the clock went back. Scores are times plus `shift`; a lower one is none.
 */
export async function readDueNow(store: DueReader, key: string, maxWaitMs: number, shift = 0): Promise<string[]> {
  const now = shift + store.clock.now();
  const late = ['ZREVRANGEBYSCORE', key, '+inf', `(${now + maxWaitMs}`, 'LIMIT', '0', '100'] as const;
  return [...(await readDue(store, key, now, 0, shift)), ...(await store.connection.read(late))];
}
