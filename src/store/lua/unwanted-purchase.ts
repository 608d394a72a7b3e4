const lookAgainMs = 3_600_000;

/**
 * Lua that decides whether a purchase is wanted, and drops one. It needs `outboxLua`, the keys `account`, `plans`, `topup`, `purchases` and
 * `topupLooks`, and `accountId`.
 *
 * is_wanted(enabled) → false when the top-up is disabled, when the account has no paid plan any more, or when it could not use what it
 *   buys because it is suspended or its invoice is unpaid.
 * drop(id) ends the purchase that the top-up has.
 * drop_unwanted(id) ends it, too; the balance of an account that could not use it is looked at again after an hour.
 * look_again(at) has the balance looked at again at that time.
 */
export const unwantedPurchaseLua = /* lua */ `
local function is_closed()
  local suspended, invoice = unpack(redis.call('HMGET', account, 'suspended', 'invoice'))
  return suspended == '1' or invoice ~= 'paid'
end

local function has_paid_plan()
  local plan = redis.call('HGET', account, 'plan')
  local json = plan and redis.call('HGET', plans, plan)
  return json and cjson.decode(json).paid == true
end

local function is_wanted(enabled) return enabled == '1' and not is_closed() and has_paid_plan() end

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
