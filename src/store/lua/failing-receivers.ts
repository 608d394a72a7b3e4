import { outboxLua } from './outbox.ts';

/** Webhooks of one receiver in a row that were given up before its owners are told. */
const toldAfter = 5;
const maxReceivers = 100;
const keptMs = 30 * 86_400_000;
const dayMs = 86_400_000;

/**
 * note_receiver(accountId, receiver, is_delivered, status): counts the webhooks of a receiver that were given up in a row, and leaves a mail
 * at the fifth one, at most one a day and receiver. Nothing is kept of a receiver that takes its webhooks, but for a day of one whose owners
 * were told. A new receiver takes the place of the one that failed longest ago, unless the owners were told of all in the last day: so
 * single failures hide nothing, and an account gets at most 100 of these mails a day. Entries are `failed told_at failed_at`.
 */
export const failingReceivers = /* lua */ `${outboxLua}
local function read_receiver(entry)
  local failed, told_at, failed_at = string.match(entry, '^(%d+) (%d+) (%d+)$')
  return tonumber(failed), tonumber(told_at), tonumber(failed_at)
end

-- A time in the future is of one before the clock went back.
local function was_told_today(told_at) return told_at <= now and now - told_at < ${dayMs} end

local function oldest_receiver()
  local flat, oldest, least = redis.call('HGETALL', failingHooks), nil, nil
  for n = 1, #flat, 2 do
    local _, told_at, failed_at = read_receiver(flat[n + 1])
    if not was_told_today(told_at) and (not least or failed_at < least) then oldest, least = flat[n], failed_at end
  end
  return oldest
end

local function forget_receiver(receiver)
  local old = redis.call('HGET', failingHooks, receiver)
  undos[#undos + 1] = function() put_back(failingHooks, { receiver }, { old }) end
  redis.call('HDEL', failingHooks, receiver)
end

local function note_receiver(accountId, receiver, is_delivered, status)
  local old = redis.call('HGET', failingHooks, receiver)
  if is_delivered and not old then return end
  local failed, told_at, failed_at = read_receiver(old or '0 0 0')
  if is_delivered and not was_told_today(told_at) then return forget_receiver(receiver) end
  if is_delivered and failed == 0 then return end
  if not old and redis.call('HLEN', failingHooks) >= ${maxReceivers} then
    local oldest = oldest_receiver()
    if not oldest then return end
    forget_receiver(oldest)
  end
  if is_delivered then failed = 0 else failed, failed_at = failed + 1, now end
  local is_told = failed >= ${toldAfter} and not was_told_today(told_at)
  undos[#undos + 1] = function() put_back(failingHooks, { receiver }, { old }) end
  redis.call('HSET', failingHooks, receiver, string.format('%d %d %d', failed, is_told and now or told_at, failed_at))
  redis.call('PEXPIRE', failingHooks, ${keptMs})
  if not is_told then return end
  put_mail('webhooks-' .. receiver, { kind = 'webhooks', account = accountId, receiver = receiver, failed = failed, status = status })
end
`;
