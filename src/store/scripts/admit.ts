import { doorArgs, doorKeys, passRate, who } from '../lua/door.ts';
import { fairShare, fairShareKeyNames } from '../lua/fair-share.ts';
import { look, quotaSpans, rateSpans, spend, waitFor } from '../lua/ring.ts';
import { script } from '../script.ts';

/** What is told of each call, after the named arguments. */
const words = 'kind, id, valid, room, hold_for, repeat_key, request, asked, line, ip, receiver';
/** How many of these there are. */
const wordsOfCall = words.split(', ').length;

const keys = [
  ...doorKeys,
  ...fairShareKeyNames.filter((key) => key !== 'account'),
  'quota',
  'jobs',
  'open',
  'calls',
] as const;
const args = [...doorArgs, 'workChannel'] as const;

/** Lua that refuses a call of a key whose quota is used up. */
function passQuota(name: keyof typeof quotaSpans): string {
  const limit = `key_quota_${name}`;
  const wait = waitFor('quota', name, quotaSpans[name], `${name}_sum + accepted`, `tonumber(${limit})`);
  return /* lua */ `if ${limit} ~= '' and ${name}_sum + accepted >= tonumber(${limit}) then
  return answer('key_quota_exceeded', '${name}', ${wait})
end
`;
}

/**
 * Admits calls of one key to credit endpoints, one after the other: judges each in the order of D10 and holds one credit,
 * or refuses it and changes nothing but the rate and the key's mark of use. A job is recorded and queued; a synchronous call
 * gets a hold with a deadline. Nothing is written before all are judged.
 * Answers {'judged', a reply for each call}, with {'admitted', id, '', limits ×4, held}, {'repeated', id, stored answer,
 * limits ×4} or a refusal; {'roll'}; or a refusal of all. Behind the named keys stand those of each call's job and repeat.
 */
export const admit = script(
  'admit',
  'needs room',
  keys,
  args,
  /* lua */ `${who({
    key: 'id total quota_total quota_monthly quota_weekly quota_daily windows',
    account: 'invoice used packs_left credits_given credits_consumed held running concurrency max_open tag',
    rolls: true,
  })}
${look('quota', 'key_windows', quotaSpans)}
local rest = math.max(0, (plan and plan.quota or 0) - tonumber(account_used)) + tonumber(account_packs_left)
  + tonumber(account_credits_given) - tonumber(account_credits_consumed)
local held, counted, accepted, open_jobs = tonumber(account_held), 0, 0, nil
-- What is written at the end: jobs and repeats as lists of words, members of sorted sets with their scores.
local new_jobs, new_repeats, by_creation, by_turn, by_deadline, remembered = {}, {}, {}, {}, {}, {}

local function earlier(repeats, request)
  local old = remembered[repeats] or redis.call('HMGET', repeats, 'id', 'until', 'request', 'answer')
  if not old[1] or now >= tonumber(old[2]) then return nil end
  if old[3] ~= request then return answer('idempotency_conflict', 'request') end
  if old[4] == 'running' then return answer('idempotency_conflict', 'running') end
  return answer('repeated', old[1], old[4])
end

local function too_many_open()
  -- Each open job holds a credit: there are never more of them.
  if held < tonumber(account_max_open) then return false end
  open_jobs = open_jobs or redis.call('ZCARD', open)
  return open_jobs + #new_jobs >= tonumber(account_max_open)
end

local function judge(job, repeats, ${words})
  ${passRate('counted')}
  counted = counted + 1
  local repeated = repeat_key ~= '' and earlier(repeats, request)
  if repeated then return repeated end
  if account_suspended == '1' then return answer('forbidden') end
  if key_quota_total ~= '' and key_total + accepted >= tonumber(key_quota_total) then
    return answer('key_quota_exceeded', 'total')
  end
  ${passQuota('monthly')}${passQuota('weekly')}${passQuota('daily')}
  if valid ~= '1' then return answer('bad_request') end
  if account_invoice ~= 'paid' or rest - held < 1 then return answer('payment_required') end
  if kind == 'job' and too_many_open() then return answer('rate_limited', 'open-jobs') end
  if room ~= '1' then return answer('unavailable') end

  held, accepted = held + 1, accepted + 1
  local expires = now + 86400000
  if kind == 'job' then
    local n = #by_turn
    by_creation[n + 1], by_creation[n + 2] = stamp, id
    -- Jobs of one millisecond keep their order.
    by_turn[n + 1], by_turn[n + 2] = string.format('%.3f', now + (clock[2] % 1000 + accepted) / 1000), id
    local fields = { job, 'id', id, 'account', accountId, 'key', key_id, 'status', 'QueuedJob', 'created_at', stamp,
      'revision', '1', 'asked', asked, 'line', line, 'ip', ip }
    if receiver ~= '' then fields[#fields + 1], fields[#fields + 2] = 'receiver', receiver end
    new_jobs[#new_jobs + 1] = fields
  else
    expires = now + tonumber(hold_for)
    local n = #by_deadline
    by_deadline[n + 1], by_deadline[n + 2] = expires, accountId .. '/' .. id
  end
  if repeat_key ~= '' then
    local state = kind == 'job' and '' or 'running'
    remembered[repeats] = { id, expires, request, state }
    new_repeats[#new_repeats + 1] = { repeats, 'request', request, 'id', id, 'until', expires, 'answer', state }
  end
  return { 'admitted', id, '', limits[1], limits[2], limits[3], limits[4], held }
end

local replies = { 'judged' }
for n = 1, (#KEYS - ${keys.length}) / 2 do
  local from = ${args.length + 2} + (n - 1) * ${wordsOfCall}
  replies[n + 1] = judge(KEYS[${keys.length - 1} + 2 * n], KEYS[${keys.length} + 2 * n], unpack(ARGV, from, from + ${wordsOfCall - 1}))
end

if is_limited and counted > 0 then
  local heads
  ${spend('rate', 'heads', rateSpans, 'counted')}
  redis.call('HSET', account, 'rate', heads, 'held', string.format('%d', held))
elseif accepted > 0 then
  redis.call('HSET', account, 'held', string.format('%d', held))
end
if accepted == 0 then
  redis.call('HSET', key, 'last_used_at', stamp)
  return replies
end
local heads
${spend('quota', 'heads', quotaSpans, 'accepted')}
redis.call('HSET', key, 'total', string.format('%d', key_total + accepted), 'last_used_at', stamp, 'windows', heads)
for _, job in ipairs(new_jobs) do redis.call('HSET', unpack(job)) end
if #by_deadline > 0 then redis.call('ZADD', calls, unpack(by_deadline)) end
for _, seen in ipairs(new_repeats) do
  redis.call('HSET', unpack(seen))
  redis.call('PEXPIRE', seen[1], 86400000)
end
if #new_jobs > 0 then
  redis.call('ZADD', jobs, unpack(by_creation))
  redis.call('ZADD', open, unpack(by_creation))
  redis.call('ZADD', queue, unpack(by_turn))
  -- An account that waits already has its place, and whoever takes jobs knows of it.
  if redis.call('ZCARD', queue) == #new_jobs then
    ${fairShare}
    update_ready(accountId, tonumber(account_running), account_concurrency, account_tag)
    redis.call('PUBLISH', workChannel, '')
  end
end
return replies
`,
);
