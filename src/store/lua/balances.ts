import { topupCooldownMs } from '../../model/topup.ts';
import { indexedStream } from './indexed-stream.ts';
import { outboxKeyNames, outboxLua } from './outbox.ts';
import { readJson } from './read-json.ts';

export const balanceKeyNames = [
  'account',
  'plans',
  'packs',
  'packQueue',
  'ledger',
  'ledgerStreams',
  'topup',
  'purchases',
  'topupLooks',
  ...outboxKeyNames,
] as const;

/** Lua of the rest of the plan's quota, and of all credits that are left. */
export const quotaLeft = 'math.max(0, b.quota - b.used)';
const creditsLeft = `${quotaLeft} + b.packs_left + b.credits_given - b.credits_consumed`;

/**
 * Lua of one account's balances. The functions below only decide: write_balances() writes every balance that changed in one
 * command, and its ledger entries before; when the script fails later, all of it is undone.
 *
 * read_balances() → nil, {'roll'} when the billing period is over and must be rolled first, or {'not_found'}; sets b.
 * book_plan_quota() books the plan's present quota, because the plan may have changed since the last booking.
 * end_hold(completed) gives a credit back; what completed is counted here, apart from the ledger that must show its charge.
 * draw(jobId) → the balance that paid one credit, in the order of D42, or 'overdraft' when all are empty (D71). Asks for a
 *   purchase when the rest falls below the threshold (D49), or, with nothing left, for a look at the end of the 72 hours that still run,
 *   because there are no more charges. It reads nothing for that without a top-up. Leaves a mail when
 *   50, 80, 90 or 100 % are used of what was there at the first charge after the last grant, without what lapsed since.
 * bought_at(id) → when the 72 hours begin after the money of a purchase was seen: now, unless the clock is behind, so that they would end early.
 */
export const balances = /* lua */ `${indexedStream}${outboxLua}${readJson}
local b
-- Fields that are read, and their values before; older: the same of fields that few scripts change.
local names = { 'plan', 'period_end', 'quota', 'used', 'packs_left', 'credits_given', 'credits_consumed', 'held', 'running',
  'concurrency', 'tag', 'topup', 'last_entry', 'completed', 'alert' }
local values, older
-- What is to be written: names of fields, ledger entries, and functions for the packs and the top-up.
local changed, entries, others = {}, {}, {}

local function read_balances()
  local f = redis.call('HMGET', account, unpack(names))
  if not f[1] then return { 'not_found' } end
  b = { plan = f[1], period_end = f[2], quota = tonumber(f[3]), used = tonumber(f[4]), packs_left = tonumber(f[5]),
    credits_given = tonumber(f[6]), credits_consumed = tonumber(f[7]), held = tonumber(f[8]), running = tonumber(f[9]),
    concurrency = f[10], tag = f[11], topup = f[12], last_entry = f[13], completed = tonumber(f[14]),
    alert = f[15] or '' }
  values, older = f, {}
  local json = b.plan ~= '' and redis.call('HGET', plans, b.plan)
  b.terms = json and read_json(json) or nil
  -- A damaged plan lapses no credit: its quota is as it was booked, and nothing is bought.
  if json and type(b.terms.quota) ~= 'number' then b.terms = { quota = b.quota } end
  if b.period_end ~= '' and now >= tonumber(b.period_end) then return { 'roll' } end
  return nil
end

local function set_field(name, value)
  if b[name] == nil then older[name] = redis.call('HGET', account, name) end
  b[name] = value
  changed[#changed + 1] = name
end

-- An entry stays for weeks: its kind and its balance are kept as their first letters.
local function write_entry(kind, balance, ...)
  entries[#entries + 1] = { string.sub(kind, 1, 1), string.sub(balance, 1, 1), ... }
end

local function write_balances()
  local written = {}
  undos[#undos + 1] = function()
    if #written > 0 then redis.pcall('XDEL', ledger, unpack(written)) end
    for n, name in ipairs(names) do older[name] = values[n] end
    for _, name in ipairs(changed) do
      if older[name] then redis.pcall('HSET', account, name, older[name]) else redis.pcall('HDEL', account, name) end
    end
  end
  for _, e in ipairs(entries) do
    written[#written + 1] = append(ledger, ledgerStreams, string.format('%d', now), 'kind', e[1], 'balance', e[2],
      'amount', e[3], 'job', e[4] or '', 'pack', e[5] or '', 'reason', e[6] or '')
  end
  if #written > 0 then set_field('last_entry', written[#written]) end
  for _, write in ipairs(others) do write() end
  local flat = {}
  for n, name in ipairs(changed) do flat[2 * n - 1], flat[2 * n] = name, b[name] end
  if #flat > 0 then redis.call('HSET', account, unpack(flat)) end
end

local function end_hold(completed)
  set_field('held', b.held - 1)
  if completed then set_field('completed', b.completed + 1) end
end

-- 'off', '' until the next charge, or 'START:PERCENT': what was there, and the alert that was sent last.
local function arm_alerts()
  if b.alert ~= '' and b.alert ~= 'off' then set_field('alert', '') end
end

-- What lapses was not used.
local function lapse(balance, amount, pack)
  write_entry('lapse', balance, string.format('%d', amount), nil, pack)
  local start, sent = string.match(b.alert, '^(%d+):(%d+)$')
  if start then set_field('alert', string.format('%d:%d', start - amount, sent)) end
end

local function set_quota(quota)
  if quota == b.quota then return end
  local left = ${quotaLeft}
  set_field('quota', quota)
  local after = ${quotaLeft}
  if after > left then
    write_entry('grant', 'subscription', after - left)
    arm_alerts()
  end
  if after < left then lapse('subscription', left - after) end
end

local function book_plan_quota() set_quota(b.terms and b.terms.quota or 0) end

local function grant_credits(amount, reason)
  set_field('credits_given', b.credits_given + amount)
  write_entry('grant', 'credits', amount, nil, nil, reason)
  arm_alerts()
end

local function grant_pack(id, json, total, purchased)
  set_field('packs_left', b.packs_left + total)
  write_entry('grant', 'packs', total, nil, id)
  arm_alerts()
  others[#others + 1] = function()
    undos[#undos + 1] = function()
      redis.pcall('HDEL', packs, id, 'used:' .. id)
      redis.pcall('ZREM', packQueue, id)
    end
    redis.call('HSET', packs, id, json, 'used:' .. id, 0)
    redis.call('ZADD', packQueue, purchased, id)
  end
end

-- The oldest pack with a rest, and its purchase, when none in the queue can pay: the queue has lost it. With an empty queue it may be damaged.
local function find_lost_pack(may_be_damaged)
  local seen, found, at = redis.call('HGETALL', packs), nil, nil
  local fields, damaged = {}, nil
  for n = 1, #seen, 2 do fields[seen[n]] = seen[n + 1] end
  for id, json in pairs(fields) do
    local p, used = read_json(json), tonumber(fields['used:' .. id] or '')
    local is_whole = type(p.total) == 'number' and used
    local purchased = tonumber(p.purchased_at) or 0
    if is_whole and used < p.total and (not at or purchased < at) then found, at = id, purchased end
    if not is_whole and string.sub(id, 1, 5) ~= 'used:' then damaged = id end
  end
  if may_be_damaged and not found then return damaged, 0 end
  return found, at
end

-- The id of the pack that pays; nil when packs_left promises more than there is, which the check of the ledger tells. No charge waits for a
-- damaged pack, or one that is lost: the next one pays. When no other is left these pay, until packs_left says that nothing is: it counts
-- them, and so does admission, so that each call would be an overdraft. So does one that the queue has lost, which is put back.
local function draw_from_pack(jobId, place, takes_damaged)
  place = place or 0
  local first = b.packs_left > 0 and redis.call('ZRANGE', packQueue, place, place, 'WITHSCORES') or {}
  local id, purchased = first[1], first[2]
  local is_lost = not id and b.packs_left > 0 and not takes_damaged
  if is_lost then id, purchased = find_lost_pack(place == 0) end
  if not id then return place > 0 and draw_from_pack(jobId, 0, true) or nil end
  local seen = redis.call('HMGET', packs, id, 'used:' .. id)
  local total, used = read_json(seen[1] or '').total, tonumber(seen[2] or '')
  local is_whole = type(total) == 'number' and used
  if not is_whole and not takes_damaged and not is_lost then return draw_from_pack(jobId, place + 1) end
  used = (used or 0) + 1
  set_field('packs_left', b.packs_left - 1)
  write_entry('charge', 'packs', 1, jobId, id)
  others[#others + 1] = function()
    undos[#undos + 1] = function()
      put_back(packs, { 'used:' .. id }, { seen[2] })
      redis.pcall('ZADD', packQueue, purchased, id)
    end
    redis.call('HSET', packs, 'used:' .. id, string.format('%d', used))
    if is_whole and used >= total then redis.call('ZREM', packQueue, id)
    elseif is_lost then redis.call('ZADD', packQueue, purchased, id) end
  end
  return id
end

local function look_again(at)
  local due = redis.call('ZSCORE', topupLooks, accountId)
  if due and now < tonumber(due) and tonumber(due) <= at then return end
  others[#others + 1] = function()
    undos[#undos + 1] = function() put_back_score(topupLooks, due, accountId) end
    redis.call('ZADD', topupLooks, string.format('%d', at), accountId)
  end
end

local function is_empty()
  return (${creditsLeft}) < 1
end

local function request_topup()
  if b.topup ~= '1' or not (b.terms and b.terms.paid) then return end
  local t = redis.call('HMGET', topup, 'threshold_percent', 'pack_total', 'last_purchase_at', 'purchase')
  local threshold, size = tonumber(t[1] or ''), tonumber(t[2] or '')
  if not threshold or not size then return end
  if t[4] and t[4] ~= '' then return end
  if (${creditsLeft}) * 100 >= threshold * (b.quota + size) then return end
  local last = tonumber(t[3] or '')
  -- The clock was ahead then, or is behind now: a look decides, which waits for a steady clock.
  if last and last > now then return look_again(now) end
  local possible_at = last and last + ${topupCooldownMs} or 0
  if now < possible_at then
    if is_empty() then look_again(possible_at) end
    return
  end
  others[#others + 1] = function()
    undos[#undos + 1] = function()
      redis.pcall('HSET', topup, 'purchase', '')
      redis.pcall('ZREM', purchases, accountId)
    end
    redis.call('HSET', topup, 'purchase', accountId .. '-' .. now, 'purchase_attempts', 0, 'purchase_since', now)
    redis.call('ZADD', purchases, now, accountId)
  end
end

local function bought_at(id)
  local t = redis.call('HMGET', topup, 'purchase', 'purchase_since', 'last_purchase_at')
  local asked_at = t[1] == id and t[2] or ''
  return string.format('%d', math.max(now, tonumber(asked_at) or 0, tonumber(t[3] or '') or 0))
end

local function alert_owners()
  if b.alert == 'off' then return end
  local left = ${creditsLeft}
  local start, sent = string.match(b.alert, '^(%d+):(%d+)$')
  start, sent = tonumber(start or left + 1), tonumber(sent or 0)
  local used = (start - left) * 100
  local reached = math.max(sent, used >= 100 * start and 100 or used >= 90 * start and 90 or used >= 80 * start and 80
    or used >= 50 * start and 50 or 0)
  if reached == sent and b.alert ~= '' then return end
  set_field('alert', string.format('%d:%d', start, reached))
  if reached == sent then return end
  others[#others + 1] = function()
    put_mail('alert-' .. accountId, { kind = 'alert', account = accountId, percent = reached, left = left })
  end
end

local function draw(jobId)
  book_plan_quota()
  local balance = 'overdraft'
  if b.used < b.quota then
    balance = 'subscription'
    set_field('used', b.used + 1)
    write_entry('charge', balance, 1, jobId)
  elseif draw_from_pack(jobId) then
    balance = 'packs'
  elseif b.credits_given > b.credits_consumed then
    balance = 'credits'
    set_field('credits_consumed', b.credits_consumed + 1)
    write_entry('charge', balance, 1, jobId)
  else
    write_entry('overdraft', balance, 1, jobId)
    -- It promised more than the packs have, and would let in calls that nothing pays for ever.
    if b.packs_left > 0 then set_field('packs_left', b.packs_left - 1) end
  end
  request_topup()
  alert_owners()
  return balance
end
`;
