import { outboxLua } from './outbox.ts';

/** Webhooks of one receiver in a row that were given up before its owners are told. */
export const toldAfter = 5;
const maxReceivers = 100;
const keptMs = 30 * 86_400_000;
const dayMs = 86_400_000;

/**
 * note_receiver(accountId, receiver, is_delivered, status): counts the webhooks of a receiver that were given up in a row, and leaves a mail
 * at the fifth one, at most one a day and receiver. Nothing is written for a receiver that takes its webhooks.
 */
export const failingReceivers = /* lua */ `${outboxLua}
local function note_receiver(accountId, receiver, is_delivered, status)
  local old = redis.call('HGET', failingHooks, receiver)
  local failed, told_at = string.match(old or '0 0', '^(%d+) (%d+)$')
  failed, told_at = tonumber(failed), tonumber(told_at)
  if is_delivered and failed == 0 then return end
  if not old and redis.call('HLEN', failingHooks) >= ${maxReceivers} then return end
  failed = is_delivered and 0 or failed + 1
  local is_told = failed >= ${toldAfter} and now - told_at >= ${dayMs}
  undos[#undos + 1] = function() put_back(failingHooks, { receiver }, { old }) end
  redis.call('HSET', failingHooks, receiver, string.format('%d %d', failed, is_told and now or told_at))
  redis.call('PEXPIRE', failingHooks, ${keptMs})
  if not is_told then return end
  put_mail('webhooks-' .. receiver, { kind = 'webhooks', account = accountId, receiver = receiver, failed = failed, status = status })
end
`;
