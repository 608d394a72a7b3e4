import { ageArgNames, ageValues, beforeAge } from './lua/age.ts';
import { type RecordStore, run, script, text } from './script.ts';

/** Finds the oldest member of a sorted set, if it has reached its age. Answers {'old', member} or {'none'}. */
const oldEntriesScript = script(
  'old-entries',
  'light',
  ['index'] as const,
  ['shift', ...ageArgNames] as const,
  /* lua */ `${beforeAge}
local first = redis.call('ZRANGEBYSCORE', index, '-inf', string.format('(%.0f', before - shift), 'LIMIT', 0, 1)[1]
return first and { 'old', first } or { 'none' }
`,
);

/**
 * Returns the oldest member of a sorted set that has reached its age by TIME of this moment, or `null`. `shift` is added to each
 * score. For what no script removes: it asks for one, removes that, and asks again.
 */
export async function findOld(
  store: RecordStore,
  index: string,
  ageMs: number,
  shift: number = 0,
): Promise<string | null> {
  const reply = await run(store, oldEntriesScript, { index, shift, ...ageValues(store, ageMs) });
  return text(reply[0]) === 'old' ? text(reply[1]) : null;
}

/** Returns TIME of this moment with the rehearsal's offset, or the time that was followed until now, if that is earlier. */
export async function readRedisTime({ connection, clock }: RecordStore): Promise<number> {
  const [seconds, microseconds] = await connection.read(['TIME']);
  const now = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000) + clock.offset();
  return Math.min(now, clock.now());
}

/** Removes what is found, one after the other, until nothing is left or `goOn` is false; returns the number removed. */
export async function removeOld<T>(
  find: () => Promise<T | null>,
  goOn: () => boolean,
  remove: (item: T) => Promise<void>,
): Promise<number> {
  let removed = 0;
  for (;;) {
    const item = await find();
    if (item === null || !goOn()) return removed;
    await remove(item);
    removed++;
  }
}
