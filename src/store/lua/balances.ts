/** Keys of every script that moves money. */
export const balanceKeyNames = ['account', 'plans', 'packs', 'packQueue', 'ledger', 'topup', 'purchases'] as const;

/**
 * Lua of one account's balances: a balance and its ledger entry change in the same function.
 *
 * read_balances() → nil, {'roll'} when the billing period is over and must be rolled first, or {'not_found'}; sets b.
 * book_plan_quota() books the plan's present quota, because the plan may have changed since the last booking.
 * draw(jobId) → the balance that paid one credit, in the order of D42, or 'overdraft' when all are empty (D71).
 * request_topup() asks for a purchase when the rest falls below the threshold (D49); it reads nothing without a top-up.
 */
export const balances = /* lua */ `
local b

local function read_balances()
  local f = redis.call('HMGET', account, 'plan', 'period_end', 'quota', 'used', 'packs_left', 'credits_given',
    'credits_consumed', 'held', 'running', 'concurrency', 'tag', 'topup')
  if not f[1] then return { 'not_found' } end
  b = { plan = f[1], period_end = f[2], quota = tonumber(f[3]), used = tonumber(f[4]), packs_left = tonumber(f[5]),
    credits_given = tonumber(f[6]), credits_consumed = tonumber(f[7]), held = tonumber(f[8]), running = f[9],
    concurrency = f[10], tag = f[11], topup = f[12] }
  local json = b.plan ~= '' and redis.call('HGET', plans, b.plan)
  b.terms = json and cjson.decode(json) or nil
  if b.period_end ~= '' and now >= tonumber(b.period_end) then return { 'roll' } end
  return nil
end

local function write_entry(kind, balance, amount, jobId, pack, reason)
  local id = redis.call('XADD', ledger, '*', 'at', string.format('%d', now), 'kind', kind, 'balance', balance, 'amount', amount, 'job', jobId or '', 'pack', pack or '',
    'reason', reason or '')
  redis.call('HSET', account, 'last_entry', id)
end

local function set_field(name, value)
  b[name] = value
  redis.call('HSET', account, name, value)
end

local function quota_left() return math.max(0, b.quota - b.used) end

local function set_quota(quota)
  local before = quota_left()
  if quota == b.quota then return end
  set_field('quota', quota)
  local after = quota_left()
  if after > before then write_entry('grant', 'subscription', after - before) end
  if after < before then write_entry('lapse', 'subscription', before - after) end
end

local function book_plan_quota() set_quota(b.terms and b.terms.quota or 0) end

local function remaining() return quota_left() + b.packs_left + b.credits_given - b.credits_consumed end

local function grant_credits(amount, reason)
  set_field('credits_given', b.credits_given + amount)
  write_entry('grant', 'credits', amount, nil, nil, reason)
end

local function grant_pack(id, json, total, purchased)
  redis.call('HSET', packs, id, json, 'used:' .. id, 0)
  redis.call('ZADD', packQueue, purchased, id)
  set_field('packs_left', b.packs_left + total)
  write_entry('grant', 'packs', total, nil, id)
end

local function draw_from_pack(jobId)
  local id = redis.call('ZRANGE', packQueue, 0, 0)[1]
  local used = redis.call('HINCRBY', packs, 'used:' .. id, 1)
  if used >= cjson.decode(redis.call('HGET', packs, id)).total then redis.call('ZREM', packQueue, id) end
  set_field('packs_left', b.packs_left - 1)
  write_entry('charge', 'packs', 1, jobId, id)
end

local function request_topup()
  if b.topup ~= '1' or not (b.terms and b.terms.paid) then return end
  local t = redis.call('HMGET', topup, 'threshold_percent', 'pack_total', 'last_purchase_at', 'purchase')
  local threshold, size = tonumber(t[1] or ''), tonumber(t[2] or '')
  if not threshold or not size then return end
  if t[4] and t[4] ~= '' then return end
  if t[3] and t[3] ~= '' and now - tonumber(t[3]) < 72 * 3600000 then return end
  if remaining() * 100 >= threshold * (b.quota + size) then return end
  redis.call('HSET', topup, 'purchase', accountId .. '-' .. now, 'purchase_attempts', 0, 'purchase_since', now)
  redis.call('ZADD', purchases, now, accountId)
end

local function draw(jobId)
  book_plan_quota()
  local balance = 'overdraft'
  if quota_left() > 0 then
    balance = 'subscription'
    set_field('used', b.used + 1)
    write_entry('charge', balance, 1, jobId)
  elseif b.packs_left > 0 then
    balance = 'packs'
    draw_from_pack(jobId)
  elseif b.credits_given > b.credits_consumed then
    balance = 'credits'
    set_field('credits_consumed', b.credits_consumed + 1)
    write_entry('charge', balance, 1, jobId)
  else
    write_entry('overdraft', balance, 1, jobId)
  end
  request_topup()
  return balance
end
`;
