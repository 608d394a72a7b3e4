import { look, rateSpans, ring } from './ring.ts';

/** Keys and arguments that every step with the door needs. */
export const doorKeys = ['account', 'key', 'rate', 'plans'] as const;
export const doorArgs = ['accountId'] as const;

const ofKey = 'account id active expires total quota_total quota_monthly quota_weekly quota_daily windows';
const ofAccount = `plan suspended stats invoice used packs_left credits_given credits_consumed held period_end running
  concurrency max_open tag removed_at rate`;

/** Lua for a table of fields of a hash; those that it has not are nil. */
function read(name: string, words: string): string {
  const fields = words.split(/\s+/);
  const table = fields.map((field, n) => `${field} = f[${n + 1}] or nil`).join(', ');
  return `(function(f) return { ${table} } end)(redis.call('HMGET', ${name}, '${fields.join("', '")}'))`;
}

/**
 * The door: who asks, and how often (D10 up to 429). A key that is known is marked as used, whatever is answered (D40);
 * a call that passes the rate uses it up (D78).
 *
 * door(rolls) → nil, or the reply that refuses; with rolls also {'roll'} when the billing period must be rolled first,
 * before anything is counted. Afterwards: k (the key's fields), plan (nil without one), limits
 * ({per-second limit, left, per-minute limit, left}, '' where there is none).
 * A step that writes the same hashes itself takes its two halves: judge(rolls), which writes nothing, and mark().
 * Between them: stamp (now, as text) and spent (the rate windows that the call uses up, nil for none).
 */
export const door = `${ring}
local k, plan, a, is_known, spent
local limits = { '', '', '', '' }
-- Redis writes a number of Lua in its slowest format: what is sent with each call is text.
local stamp = string.format('%d', now)

local function plan_named(name)
  local json = name and name ~= '' and redis.call('HGET', plans, name)
  return json and cjson.decode(json) or nil
end

local function rate_refuses()
  local found = ${look('rate', 'a.rate', rateSpans)}
  local function pass(limit, w, from, word)
    w.counts = type(limit) == 'number'
    if not w.counts then return nil end
    limits[from], limits[from + 1] = limit, math.max(0, limit - w.sum - 1)
    if w.sum >= limit then
      limits[from + 1] = 0
      return { 'rate_limited', word, wait(w, limit), unpack(limits) }
    end
  end
  local refused = pass(plan.per_second, found[1], 1, 'per-second') or pass(plan.per_minute, found[2], 3, 'per-minute')
  if not refused and (found[1].counts or found[2].counts) then spent = found end
  return refused
end

local function over() return a.period_end ~= '' and now >= tonumber(a.period_end) end

local function judge(rolls)
  k = ${read('key', ofKey)}
  if k.account ~= accountId then return { 'invalid_api_key' } end
  is_known = true
  if k.active ~= '1' then return { 'inactive_api_key' } end
  if k.expires ~= '' and now > tonumber(k.expires) then return { 'expired_api_key' } end
  a = ${read('account', ofAccount)}
  if a.removed_at ~= '' then return { 'invalid_api_key' } end
  if rolls and over() then return { 'roll' } end
  plan = plan_named(a.plan)
  return plan and rate_refuses()
end

local function mark()
  if is_known then redis.call('HSET', key, 'last_used_at', stamp) end
  if spent then redis.call('HSET', account, 'rate', spend(spent)) end
end

local function door(rolls)
  local refused = judge(rolls)
  mark()
  return refused
end

local function suspended() return a.suspended == '1' and { 'forbidden', '', '', unpack(limits) } end
`;
