import { doorArgs, doorKeys, passRate, who } from '../lua/door.ts';
import { rateSpans, spend } from '../lua/ring.ts';
import { script } from '../script.ts';

const keys = [...doorKeys, 'queue'] as const;

/**
 * Polls of one key, one after the other: the door, the job and its place in the account's queue. Another account's job is
 * 'not_found' (D14). Behind the named keys stand the jobs, behind the named arguments their ids.
 * Answers {'judged', a reply for each}, with {'entered', '', '', limits ×4, fields of the job, place in the queue or '', how
 * many jobs of the account run, its own limit of those or ''} or a refusal; or a refusal of all.
 */
export const poll = script(
  'poll',
  'always',
  keys,
  doorArgs,
  /* lua */ `${who({ account: 'running concurrency' })}
local counted = 0

local function judge(job, id)
  ${passRate('counted')}
  counted = counted + 1
  if account_suspended == '1' then return answer('forbidden') end
  local fields = redis.call('HGETALL', job)
  if #fields == 0 or redis.call('HGET', job, 'account') ~= accountId then return answer('not_found') end
  local place = redis.call('ZRANK', queue, id) or ''
  return { 'entered', '', '', limits[1], limits[2], limits[3], limits[4], fields, place, account_running,
    account_concurrency }
end

local replies = { 'judged' }
for n = 1, #KEYS - ${keys.length} do
  replies[n + 1] = judge(KEYS[${keys.length} + n], ARGV[${doorArgs.length + 1} + n])
end
redis.call('HSET', key, 'last_used_at', stamp)
if is_limited and counted > 0 then
  local heads
  ${spend('rate', 'heads', rateSpans, 'counted')}
  redis.call('HSET', account, 'rate', heads)
end
return replies
`,
);
