import { isEarly } from '../lua/age.ts';
import { statistics } from '../lua/statistics.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { repeatKey } from './admit-call.ts';
import type { HeldCall } from './charge-call.ts';

/** Longer than any hold of a synchronous call: one that would last longer is of a time before the clock of Redis went back. */
export const maxHoldMs = 86_400_000;

/**
 * Gives back the hold of a synchronous call that did not answer 200, once. With a log status it counts in the statistics;
 * without one the call died and was not answered. The answer stored for its Idempotency-Key is forgotten. A call that is
 * only thought to be dead keeps its hold until its deadline. Answers {'released'}, {'early'} or {'gone'}.
 */
const releaseCallScript = script(
  'release-call',
  'always',
  ['account', 'calls', 'stats', 'repeats'],
  ['accountId', 'id', 'log', 'took', 'isExpired'],
)`${statistics}
local deadline = redis.call('ZSCORE', calls, accountId .. '/' .. id)
if not deadline then return { 'gone' } end
if isExpired == '1' and ${isEarly('deadline', maxHoldMs)} then return { 'early' } end
local held = redis.call('HGET', account, 'held')
local is_repeatable = redis.call('HGET', repeats, 'id') == id
undos[1] = function()
  redis.pcall('ZADD', calls, deadline, accountId .. '/' .. id)
  redis.pcall('HSET', account, 'held', held)
end
redis.call('HSET', account, 'held', string.format('%d', held - 1))
if log ~= '' then count_answer(log, tonumber(took), tonumber(took)) end
redis.call('ZREM', calls, accountId .. '/' .. id)
if is_repeatable then redis.call('DEL', repeats) end
return { 'released' }
`;

/** Gives the hold of a synchronous call back, once; `log` is the status of its answer, `null` when it was not answered. */
export async function releaseCall(
  store: RecordStore,
  call: HeldCall,
  log: number | null,
  tookMs = 0,
): Promise<Change<'gone'>> {
  const values = { ...valuesOf(call), log: log ?? '', took: Math.round(tookMs), isExpired: '0' };
  return changeOf(await run(store, releaseCallScript, values), 'released');
}

/** Gives the hold of a synchronous call back whose API died; false before the deadline of the hold. */
export async function releaseExpiredCall(store: RecordStore, call: HeldCall): Promise<boolean> {
  const reply = await run(store, releaseCallScript, { ...valuesOf(call), log: '', took: 0, isExpired: '1' });
  return reply[0] === 'released';
}

function valuesOf({ accountId, endpoint, repeat, id }: HeldCall) {
  return { accountId, endpoint, id, repeats: repeatKey(accountId, repeat) };
}
