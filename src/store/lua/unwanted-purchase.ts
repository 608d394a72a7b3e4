import { readJson } from './read-json.ts';

const lookAgainMs = 3_600_000;

/**
 * Lua that decides whether a purchase is wanted, and drops one. It needs `outboxLua`, the keys `account`, `plans`, `topup`, `purchases` and
 * `topupLooks`, and the arguments `accountId` and `seenNow`.
 *
 * is_wanted(enabled) → false when the top-up is disabled, when the account has no paid plan any more, when it could not use what it
 *   buys because it is suspended or its invoice is unpaid, or when the balance is not below the threshold any more (D49): its owner paid for a
 *   pack since, or the next billing period has begun.
 * drop(id) ends the purchase that the top-up has.
 * drop_unwanted(id) ends it, too; the balance of an account that could not use it is looked at again after an hour.
 * look_again(at) has the balance looked at again at that time.
 */
export const unwantedPurchaseLua = /* lua */ `${readJson}
local function is_closed()
  local suspended, invoice = unpack(redis.call('HMGET', account, 'suspended', 'invoice'))
  return suspended == '1' or invoice ~= 'paid'
end

-- The plan's quota may have changed since the last charge, or have begun anew. A jump of TIME begins nothing: nobody would ask again for an
-- account that is empty.
local function is_low(quota)
  local used, ends, packs_left, given, consumed = unpack(redis.call('HMGET', account, 'used', 'period_end', 'packs_left', 'credits_given',
    'credits_consumed'))
  local threshold, size = unpack(redis.call('HMGET', topup, 'threshold_percent', 'pack_total'))
  if not tonumber(threshold) or not tonumber(size) then return false end
  if ends ~= '' and math.min(now, tonumber(seenNow)) >= tonumber(ends) then used = 0 end
  local left = math.max(0, quota - used) + packs_left + given - consumed
  return left * 100 < threshold * (quota + size)
end

local function has_low_paid_plan()
  local plan = redis.call('HGET', account, 'plan')
  local json = plan and redis.call('HGET', plans, plan)
  local terms = read_json(json or '')
  return terms.paid == true and is_low(terms.quota)
end

local function is_wanted(enabled) return enabled == '1' and not is_closed() and has_low_paid_plan() end

local function look_again(at)
  local look = redis.call('ZSCORE', topupLooks, accountId)
  undos[#undos + 1] = function() put_back_score(topupLooks, look, accountId) end
  redis.call('ZADD', topupLooks, at, accountId)
end

local function drop(id)
  undos[#undos + 1] = function() put_back(topup, { 'purchase' }, { id }) end
  redis.call('HSET', topup, 'purchase', '')
  redis.call('ZREM', purchases, accountId)
end

local function drop_unwanted(id)
  if is_closed() then look_again(string.format('%d', now + ${lookAgainMs})) end
  drop(id)
end
`;
