import { quotaHeads, quotaRanges, readQuotaHeads, slidingWindow } from '../lua/sliding-window.ts';
import { type Change, changeOf, type RecordStore, run, script } from '../script.ts';
import { repeatKey } from './admit-call.ts';
import type { HeldCall } from './charge-call.ts';

/**
 * Takes back a synchronous call that was refused after its admission, once: its hold and what the quotas of its key count
 * (D35). It was admitted `holdMs` before the deadline of its hold. Answers {'refused'} or {'gone'}.
 */
const refuseCallScript = script(
  'refuse-call',
  'always',
  ['account', 'calls', 'key', 'quota', 'repeats'],
  ['accountId', 'id', 'holdMs'],
)`${slidingWindow}
local member = accountId .. '/' .. id
local deadline = redis.call('ZSCORE', calls, member)
if not deadline then return { 'gone' } end
local held = redis.call('HGET', account, 'held')
local is_repeatable = redis.call('HGET', repeats, 'id') == id
local counted = tonumber(deadline) - tonumber(holdMs)
local head = redis.call('HMGET', key, 'total', 'windows')
${readQuotaHeads('head[2]')}
undos[1] = function()
  redis.pcall('HSET', account, 'held', held)
  redis.pcall('ZADD', calls, deadline, member)
  if day_run then redis.pcall('HSET', key, 'total', head[1], 'windows', head[2]) end
end
redis.call('HSET', account, 'held', string.format('%d', held - 1))
-- The key may have been deleted meanwhile.
if day_run then
  redis.call('HSET', key, 'total', string.format('%d', math.max(0, tonumber(head[1]) - 1)),
    'windows', take_back(quota, ${quotaRanges.month}, counted, ${quotaHeads.month}) .. ' '
      .. take_back(quota, ${quotaRanges.week}, counted, ${quotaHeads.week}) .. ' '
      .. take_back(quota, ${quotaRanges.day}, counted, ${quotaHeads.day}))
end
redis.call('ZREM', calls, member)
if is_repeatable then redis.call('DEL', repeats) end
return { 'refused' }
`;

/** Takes back a synchronous call that is refused after all, once; its hold lasts `holdMs`, and it counts for the key with this hash. */
export async function refuseCall(
  store: RecordStore,
  call: HeldCall & { readonly hash: string; readonly holdMs: number },
): Promise<Change<'gone'>> {
  const { accountId, hash, id, holdMs, repeat } = call;
  const reply = await run(store, refuseCallScript, {
    ...{ accountId, hash, id, holdMs },
    repeats: repeatKey(accountId, repeat),
  });
  return changeOf(reply, 'refused');
}
