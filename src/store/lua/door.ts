import { look, rateSpans, ring } from './ring.ts';

/** Keys and arguments that every step with the door needs. */
export const doorKeys = ['account', 'key', 'rate', 'plans'] as const;
export const doorArgs = ['accountId'] as const;

/**
 * The door: who asks, and how often (D10 up to 429). A key that is known is marked as used, whatever is answered (D40);
 * a call that passes the rate uses it up (D78).
 *
 * door(rolls) → nil, or the reply that refuses; with rolls also {'roll'} when the billing period must be rolled first,
 * before anything is counted. Afterwards: k (the key's fields), plan (nil without one), limits
 * ({per-second limit, left, per-minute limit, left}, '' where there is none).
 * account_field(name), account_number(name) read the account.
 */
export const door = `${ring}
local k, plan, a
local limits = { '', '', '', '' }

local function read(name, ...)
  local found, fields = redis.call('HMGET', name, ...), {}
  for n, field in ipairs({...}) do fields[field] = found[n] or nil end
  return fields
end

local function plan_named(name)
  local json = name and name ~= '' and redis.call('HGET', plans, name)
  return json and cjson.decode(json) or nil
end

local function rate_refuses()
  local found, windows = ${look('rate', rateSpans)}, {}
  local function judge(limit, w, from, word)
    if type(limit) ~= 'number' then return nil end
    limits[from], limits[from + 1] = limit, math.max(0, limit - w.sum - 1)
    if w.sum >= limit then
      limits[from + 1] = 0
      return { 'rate_limited', word, wait(w, limit), unpack(limits) }
    end
    windows[#windows + 1] = w
  end
  local refused = judge(plan.per_second, found[1], 1, 'per-second') or judge(plan.per_minute, found[2], 3, 'per-minute')
  if not refused then spend(rate, windows) end
  return refused
end

local function over() return a.period_end ~= '' and now >= tonumber(a.period_end) end

local function door(rolls)
  k = read(key, 'account', 'id', 'active', 'expires', 'alias', 'total', 'quota_total', 'quota_monthly', 'quota_weekly', 'quota_daily')
  if k.account ~= accountId then return { 'invalid_api_key' } end
  redis.call('HSET', key, 'last_used_at', now)
  if k.active ~= '1' then return { 'inactive_api_key' } end
  if k.expires ~= '' and now > tonumber(k.expires) then return { 'expired_api_key' } end
  a = read(account, 'plan', 'suspended', 'stats', 'invoice', 'used', 'packs_left', 'credits_given', 'credits_consumed', 'held',
    'period_end', 'running', 'concurrency', 'max_open', 'tag', 'removed_at')
  if a.removed_at ~= '' then return { 'invalid_api_key' } end
  if rolls and over() then return { 'roll' } end
  plan = plan_named(a.plan)
  return plan and rate_refuses()
end

local function suspended() return a.suspended == '1' and { 'forbidden', '', '', unpack(limits) } end
`;
