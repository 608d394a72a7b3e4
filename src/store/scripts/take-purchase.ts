import { script } from '../script.ts';

/**
 * Claims the purchase that an account's charge asked for, and leases it: one at a time, with an id and terms that stay the
 * same over all its tries. One that would pass the monthly cap, or whose setting was disabled, is dropped, but never after
 * its first try: it may be paid already.
 * Answers {'taken', id, JSON of its terms}, {'capped'}, {'dropped'}, {'early'} or {'gone'}.
 */
export const takePurchase = script(
  'take-purchase',
  'always',
  ['topup', 'purchases'] as const,
  ['accountId', 'lease', 'month'] as const,
  /* lua */ `
local at = redis.call('ZSCORE', purchases, accountId)
if not at then return { 'gone' } end
if now < tonumber(at) then return { 'early' } end
local t = redis.call('HMGET', topup, 'purchase', 'enabled', 'monthly_cap_cents', 'price_cents', 'spent_month', 'spent_cents',
  'purchase_attempts', 'purchase_terms')
local function drop(word)
  redis.call('ZREM', purchases, accountId)
  redis.call('HSET', topup, 'purchase', '')
  return { word }
end
if not t[1] or t[1] == '' then return drop('dropped') end
local terms = t[8]
if t[7] == '0' then
  local spent = t[5] == month and tonumber(t[6] or '0') or 0
  if t[2] ~= '1' then return drop('dropped') end
  if t[3] and t[3] ~= '' and spent + tonumber(t[4]) > tonumber(t[3]) then return drop('capped') end
  terms = {}
  for _, name in ipairs({ 'pack_title', 'pack_total', 'price_cents', 'currency', 'customer', 'payment_method' }) do
    terms[name] = redis.call('HGET', topup, name) or ''
  end
  terms = cjson.encode(terms)
  redis.call('HSET', topup, 'purchase_terms', terms)
end
redis.call('HINCRBY', topup, 'purchase_attempts', 1)
redis.call('ZADD', purchases, now + tonumber(lease), accountId)
return { 'taken', t[1], terms }
`,
);
