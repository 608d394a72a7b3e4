import { ageArgNames, ageValues, beforeAge } from './lua/age.ts';
import { type RecordStore, run, script, text } from './script.ts';

/** Finds the oldest members of a sorted set that have reached their age. Answers {'old', member, …}. */
const oldEntriesScript = script('old-entries', 'light', ['index'], ['shift', 'count', ...ageArgNames])`${beforeAge}
return { 'old', unpack(redis.call('ZRANGEBYSCORE', index, '-inf', string.format('(%.0f', before - shift), 'LIMIT', 0, count)) }
`;

/**
 * Returns the oldest member of a sorted set that has reached its age by TIME of this moment, or the oldest `count` of them. `shift` is
 * added to each score. For what no script removes: it asks for some, removes these, and asks again.
 */
export async function findOld(
  store: RecordStore,
  index: string,
  ageMs: number,
  { shift = 0, count = 1 } = {},
): Promise<string[]> {
  const [, ...old] = await run(store, oldEntriesScript, { index, shift, count, ...ageValues(store, ageMs) });
  return old.map(text);
}

/** Returns TIME of this moment with the rehearsal's offset, or the time that was followed until now, if that is earlier. */
export async function readRedisTime({ connection, clock }: RecordStore): Promise<number> {
  const [seconds, microseconds] = await connection.read(['TIME']);
  const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000) + clock.offset();
  return Math.min(now, clock.now());
}

/** Time after which a removal that failed is due again, and that one pass of removals takes at most: it meets none of them twice. */
export const removalRetryMs = 600_000;

/**
 * Removes what is found, all of it at once, until nothing is left, `goOn` is false or the pass has taken 10 minutes: thousands that cannot be
 * removed keep no other work waiting. `remove` returns false for one that it has postponed. Returns the number removed.
 */
export async function removeOld<T>(
  { clock }: Pick<RecordStore, 'clock'>,
  find: () => Promise<readonly T[]>,
  goOn: () => boolean,
  remove: (item: T) => Promise<boolean>,
): Promise<number> {
  const endsAt = clock.now() + removalRetryMs;
  let removed = 0;
  for (;;) {
    const removals = (await find()).map(async (item) => {
      if (goOn() && (await remove(item))) removed++;
    });
    const failure = (await Promise.allSettled(removals)).find(({ status }) => status === 'rejected');
    if (failure) throw (failure as PromiseRejectedResult).reason;
    if (removals.length === 0 || !goOn() || clock.now() >= endsAt) return removed;
  }
}
