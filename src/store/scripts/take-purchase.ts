import { script } from '../script.ts';

/**
 * Claims the purchase that an account's charge asked for, and leases it: one at a time, with an id that stays the same
 * over all its tries. A purchase that would pass the monthly cap, or whose setting was disabled meanwhile, is dropped.
 * Answers {'taken', id, fields of the setting}, {'capped'}, {'dropped'}, {'early'} or {'gone'}.
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
local t = redis.call('HMGET', topup, 'purchase', 'enabled', 'monthly_cap_cents', 'price_cents', 'spent_month', 'spent_cents')
local function drop(word)
  redis.call('ZREM', purchases, accountId)
  redis.call('HSET', topup, 'purchase', '')
  return { word }
end
if not t[1] or t[1] == '' or t[2] ~= '1' then return drop('dropped') end
local spent = t[5] == month and tonumber(t[6] or '0') or 0
if t[3] and t[3] ~= '' and spent + tonumber(t[4]) > tonumber(t[3]) then return drop('capped') end
redis.call('HINCRBY', topup, 'purchase_attempts', 1)
redis.call('ZADD', purchases, now + tonumber(lease), accountId)
return { 'taken', t[1], redis.call('HGETALL', topup) }
`,
);
