import { isEarly } from '../lua/age.ts';
import { quotaHeads, quotaRanges, readQuotaHeads, slidingWindow } from '../lua/sliding-window.ts';
import { statistics } from '../lua/statistics.ts';
import { type Change, changeOf, type RecordStore, run, type ScriptReply, script } from '../script.ts';
import { repeatKey } from './admit-call.ts';
import type { HeldCall } from './charge-call.ts';

/** Longer than any hold of a synchronous call: one that would last longer is of a time before the clock of Redis went back. */
export const maxHoldMs = 86_400_000;

/**
 * Gives back the hold of a synchronous call that did not answer 200, once. With a log status it counts in the statistics;
 * without one the call died and was not answered. The answer stored for its Idempotency-Key is forgotten. A call that is
 * only thought to be dead keeps its hold until its deadline. With `holdMs`, by which the deadline follows the admission, the quotas of the
 * key forget the call, too. Answers {'released'}, {'early'} or {'gone'}.
 */
const releaseCallScript = script(
  'release-call',
  'always',
  ['account', 'calls', 'stats', 'repeats', 'key', 'quota'],
  ['accountId', 'id', 'log', 'took', 'isExpired', 'holdMs'],
)`${statistics}${slidingWindow}
local deadline = redis.call('ZSCORE', calls, accountId .. '/' .. id)
if not deadline then return { 'gone' } end
if isExpired == '1' and ${isEarly('deadline', maxHoldMs)} then return { 'early' } end
local held = redis.call('HGET', account, 'held')
local is_repeatable = redis.call('HGET', repeats, 'id') == id
-- The key may have been deleted meanwhile.
local head = holdMs ~= '' and redis.call('HMGET', key, 'total', 'windows') or {}
${readQuotaHeads('head[2]')}
undos[1] = function()
  redis.pcall('ZADD', calls, deadline, accountId .. '/' .. id)
  redis.pcall('HSET', account, 'held', held)
  if day_run then redis.pcall('HSET', key, 'total', head[1], 'windows', head[2]) end
end
redis.call('HSET', account, 'held', string.format('%d', held - 1))
if day_run then
  local counted = tonumber(deadline) - tonumber(holdMs)
  redis.call('HSET', key, 'total', string.format('%d', math.max(0, tonumber(head[1]) - 1)),
    'windows', take_back(quota, ${quotaRanges.month}, counted, ${quotaHeads.month}) .. ' '
      .. take_back(quota, ${quotaRanges.week}, counted, ${quotaHeads.week}) .. ' '
      .. take_back(quota, ${quotaRanges.day}, counted, ${quotaHeads.day}))
end
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
  return changeOf(await runRelease(store, call, { log: log ?? '', took: Math.round(tookMs) }), 'released');
}

/** Takes back a synchronous call that is refused after all, once (D35); its hold lasts `holdMs`, and it counts for the key with this hash. */
export async function refuseCall(
  store: RecordStore,
  { hash, holdMs, ...call }: HeldCall & { readonly hash: string; readonly holdMs: number },
): Promise<Change<'gone'>> {
  return changeOf(await runRelease(store, call, { hash, holdMs }), 'released');
}

/** Gives the hold of a synchronous call back whose API died; false before the deadline of the hold. */
export async function releaseExpiredCall(store: RecordStore, call: HeldCall): Promise<boolean> {
  const [word] = await runRelease(store, call, { isExpired: '1' });
  return word === 'released';
}

const plainRelease = { hash: '', log: '', took: 0, isExpired: '0', holdMs: '' };

function runRelease(
  store: RecordStore,
  { accountId, endpoint, repeat, id }: HeldCall,
  release: Partial<Record<keyof typeof plainRelease, string | number>>,
): Promise<ScriptReply> {
  const call = { accountId, endpoint, id, repeats: repeatKey(accountId, repeat) };
  return run(store, releaseCallScript, { ...call, ...plainRelease, ...release });
}
