import { door, doorArgs, doorKeys } from '../lua/door.ts';
import { fair, fairKeys } from '../lua/fair.ts';
import { look, quotaSpans, spend, waitFor } from '../lua/ring.ts';
import { script } from '../script.ts';

const args = [...doorArgs, 'kind', 'id', 'valid', 'room', 'holdFor', 'repeatKey', 'request', 'workChannel'] as const;
/** Where the names and values that the job's hash takes over stand: behind the clock's offset and the arguments. */
const fieldsAt = args.length + 2;

/** Lua that refuses a call of a key whose quota is used up. */
function passQuota(name: keyof typeof quotaSpans): string {
  const limit = `key_quota_${name}`;
  return /* lua */ `if ${limit} ~= '' and ${name}_sum >= tonumber(${limit}) then
  return refuse('key_quota_exceeded', '${name}', ${waitFor('quota', name, quotaSpans[name], `tonumber(${limit})`)})
end
`;
}

/**
 * Admits a call of a credit endpoint: judges it in the order of D10 and holds one credit, or refuses and changes nothing
 * but the rate and the key's mark of use. A job is recorded and queued; a synchronous call gets a hold with a deadline.
 * Answers {'admitted', id, '', limits ×4, held}, {'repeated', id, stored answer, limits ×4}, {'roll'}, or a refusal.
 */
export const admit = script(
  'admit',
  'needs room',
  [
    ...doorKeys,
    ...fairKeys.filter((key) => key !== 'account'),
    'quota',
    'repeats',
    'job',
    'jobs',
    'open',
    'calls',
  ] as const,
  args,
  /* lua */ `${door({
    key: 'id total quota_total quota_monthly quota_weekly quota_daily windows',
    account: `invoice used packs_left credits_given credits_consumed held running concurrency max_open tag`,
    rolls: true,
  })}
if repeatKey ~= '' then
  local old = redis.call('HMGET', repeats, 'id', 'until', 'request', 'answer')
  if old[1] and now < tonumber(old[2]) then
    if old[3] ~= request then return refuse('idempotency_conflict', 'request') end
    if old[4] == 'running' then return refuse('idempotency_conflict', 'running') end
    return refuse('repeated', old[1], old[4])
  end
end

if account_suspended == '1' then return refuse('forbidden') end

if key_quota_total ~= '' and tonumber(key_total) >= tonumber(key_quota_total) then
  return refuse('key_quota_exceeded', 'total')
end
${look('quota', 'key_windows', quotaSpans)}
${passQuota('monthly')}${passQuota('weekly')}${passQuota('daily')}
if valid ~= '1' then return refuse('bad_request') end

local rest = math.max(0, (plan and plan.quota or 0) - tonumber(account_used)) + tonumber(account_packs_left)
  + tonumber(account_credits_given) - tonumber(account_credits_consumed)
local held = tonumber(account_held) + 1
if account_invoice ~= 'paid' or rest < held then return refuse('payment_required') end

-- Each open job holds a credit: there are never more of them.
if kind == 'job' and held > tonumber(account_max_open) and redis.call('ZCARD', open) >= tonumber(account_max_open) then
  return refuse('rate_limited', 'open-jobs')
end
if room ~= '1' then return refuse('unavailable') end

local holds, windows = string.format('%d', held), nil
${spend('quota', 'windows', quotaSpans)}
if rate_heads then redis.call('HSET', account, 'held', holds, 'rate', rate_heads)
else redis.call('HSET', account, 'held', holds) end
redis.call('HSET', key, 'total', string.format('%d', key_total + 1), 'last_used_at', stamp, 'windows', windows)
local expires = now + 86400000
if kind == 'job' then
  redis.call('HSET', job, 'id', id, 'account', accountId, 'key', key_id, 'status', 'QueuedJob', 'created_at', stamp,
    'revision', '1', unpack(ARGV, ${fieldsAt}))
  redis.call('ZADD', jobs, stamp, id)
  redis.call('ZADD', open, stamp, id)
  -- Two jobs of one millisecond keep their order.
  redis.call('ZADD', queue, string.format('%.3f', now + clock[2] % 1000 / 1000), id)
  -- An account that waits already has its place, and whoever takes jobs knows of it.
  if redis.call('ZCARD', queue) == 1 then
    ${fair}
    stand(accountId, tonumber(account_running), account_concurrency, account_tag)
    redis.call('PUBLISH', workChannel, id)
  end
else
  expires = now + tonumber(holdFor)
  redis.call('ZADD', calls, expires, accountId .. '/' .. id)
end
if repeatKey ~= '' then
  redis.call('HSET', repeats, 'request', request, 'id', id, 'until', expires, 'answer', kind == 'job' and '' or 'running')
  redis.call('PEXPIRE', repeats, 86400000)
end
return { 'admitted', id, '', limits[1], limits[2], limits[3], limits[4], held }
`,
);
