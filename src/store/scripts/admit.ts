import { door, doorArgs, doorKeys } from '../lua/door.ts';
import { fair, fairKeys } from '../lua/fair.ts';
import { look, quotaSpans } from '../lua/ring.ts';
import { script } from '../script.ts';

const args = [...doorArgs, 'kind', 'id', 'valid', 'room', 'holdFor', 'repeatKey', 'request', 'workChannel'] as const;
/** Where the names and values that the job's hash takes over stand: behind the clock's offset and the arguments. */
const fieldsAt = args.length + 2;

/**
 * Admits a call of a credit endpoint: judges it in the order of D10 and holds one credit, or refuses and changes nothing
 * but the rate and the key's mark of use. A job is recorded and queued; a synchronous call gets a hold with a deadline. The
 * same id again is the same call: it was admitted, and nothing more is held.
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
  /* lua */ `${door}${fair}
local held, windows

local function admitted() return { 'admitted', id, '', limits[1], limits[2], limits[3], limits[4], held } end

local function same()
  held = tonumber(a.held)
  if kind == 'job' then return redis.call('EXISTS', job) == 1 and admitted() end
  return redis.call('ZSCORE', calls, accountId .. '/' .. id) and admitted()
end

local function earlier()
  if repeatKey == '' then return nil end
  local old = redis.call('HMGET', repeats, 'id', 'until', 'request', 'answer')
  if not old[1] or now >= tonumber(old[2]) then return nil end
  if old[3] ~= request then return { 'idempotency_conflict', 'request', '', unpack(limits) } end
  if old[4] == 'running' then return { 'idempotency_conflict', 'running', '', unpack(limits) } end
  return { 'repeated', old[1], old[4], unpack(limits) }
end

local function quota_refuses()
  if k.quota_total ~= '' and tonumber(k.total) >= tonumber(k.quota_total) then
    return { 'key_quota_exceeded', 'total', '', unpack(limits) }
  end
  windows = ${look('quota', 'k.windows', quotaSpans)}
  for n, word in ipairs({ 'monthly', 'weekly', 'daily' }) do
    local limit, w = k['quota_' .. word], windows[n]
    if limit ~= '' and w.sum >= tonumber(limit) then
      return { 'key_quota_exceeded', word, wait(w, tonumber(limit)), unpack(limits) }
    end
  end
end

local function money_refuses()
  if a.invoice ~= 'paid' then return true end
  local rest = math.max(0, (plan and plan.quota or 0) - tonumber(a.used)) + tonumber(a.packs_left)
    + tonumber(a.credits_given) - tonumber(a.credits_consumed)
  return rest - tonumber(a.held) < 1
end

local function record_job()
  redis.call('HSET', job, 'id', id, 'account', accountId, 'key', k.id, 'status', 'QueuedJob', 'created_at', stamp,
    'revision', '1', unpack(ARGV, ${fieldsAt}))
  redis.call('ZADD', jobs, stamp, id)
  redis.call('ZADD', open, stamp, id)
  -- Two jobs of one millisecond keep their order.
  redis.call('ZADD', queue, string.format('%.3f', now + clock[2] % 1000 / 1000), id)
  -- An account that waits already has its place.
  if redis.call('ZCARD', queue) == 1 then stand(accountId, tonumber(a.running), a.concurrency, a.tag) end
  redis.call('PUBLISH', workChannel, id)
end

local function accept()
  held = tonumber(a.held) + 1
  local holds = string.format('%d', held)
  if spent then redis.call('HSET', account, 'held', holds, 'rate', spend(spent))
  else redis.call('HSET', account, 'held', holds) end
  redis.call('HSET', key, 'total', string.format('%d', k.total + 1), 'last_used_at', stamp, 'windows', spend(windows))
  local expires = now + 86400000
  if kind == 'job' then
    record_job()
  else
    expires = now + tonumber(holdFor)
    redis.call('ZADD', calls, expires, accountId .. '/' .. id)
  end
  if repeatKey ~= '' then
    redis.call('HSET', repeats, 'request', request, 'id', id, 'until', expires, 'answer', kind == 'job' and '' or 'running')
    redis.call('PEXPIRE', repeats, 86400000)
  end
  return admitted()
end

local function refusal()
  local refused = judge(true) or same() or earlier() or suspended() or quota_refuses()
  if refused then return refused end
  if valid ~= '1' then return { 'bad_request', '', '', unpack(limits) } end
  if money_refuses() then return { 'payment_required', '', '', unpack(limits) } end
  if kind == 'job' and redis.call('ZCARD', open) >= tonumber(a.max_open) then
    return { 'rate_limited', 'open-jobs', '', unpack(limits) }
  end
  if room ~= '1' then return { 'unavailable', '', '', unpack(limits) } end
end

local refused = refusal()
if refused then
  mark()
  return refused
end
return accept()
`,
);
