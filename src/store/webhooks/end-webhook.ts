import { maxTriedLength, maxWebhookAttempts } from '../../model/webhook-attempts.ts';
import { failingReceivers } from '../lua/failing-receivers.ts';
import { outboxKeyNames } from '../lua/outbox.ts';
import { type RecordStore, run, script, text } from '../script.ts';
import { type DueWebhook, memberOf } from './due-webhooks.ts';

/**
 * Ends one attempt of a delivery: delivered, or due again `gap` milliseconds from now, or failed after the last attempt or a
 * final refusal (D55). The attempt is noted in `tried`, once. Owners are told of a receiver that keeps failing. An attempt whose lease
 * another attempt has taken over changes nothing.
 * Answers {'delivered'}, {'again', at}, {'failed'} or {'stale'}.
 */
const endWebhookScript = script(
  'end-webhook',
  'always',
  ['webhooks', 'webhook', 'failingHooks', ...outboxKeyNames],
  ['accountId', 'receiver', 'member', 'attempt', 'verdict', 'status', 'gap', 'max'],
)`${failingReceivers}
local attempts, created_at, last_at, tried = unpack(redis.call('HMGET', webhook, 'attempts', 'created_at', 'last_at', 'tried'))
if attempts ~= attempt or not redis.call('ZSCORE', webhooks, member) then return { 'stale' } end
local begun = string.format('%s:%x:', attempt, math.max(0, last_at - created_at))
local earlier = string.gsub(tried or '', ' ?' .. begun .. '%S*$', '')
tried = string.format('%s %s%x:%s', earlier, begun, math.max(0, now - last_at), status)
tried = string.match(tried, '^ ?(.*)$')
while #tried > ${maxTriedLength} do tried = string.match(tried, ' (.*)$') end
if verdict == 'again' and tonumber(attempt) < tonumber(max) then
  local at = now + tonumber(gap)
  redis.call('HSET', webhook, 'last_status', status, 'next_at', at, 'tried', tried)
  redis.call('ZADD', webhooks, at, member)
  return { 'again', at }
end
local state = verdict == 'delivered' and 'delivered' or 'failed'
note_receiver(accountId, receiver, state == 'delivered', status)
redis.call('HSET', webhook, 'last_status', status, 'state', state, 'next_at', '', 'tried', tried)
redis.call('ZREM', webhooks, member)
return { state }
`;

/** Ends one attempt: `again` is retried after the gap while attempts are left, `refused` is final. */
export async function endWebhook(
  store: RecordStore,
  due: DueWebhook,
  attempt: number,
  ended: { verdict: 'delivered' | 'again' | 'refused'; status: number | null },
  gapMs: number,
): Promise<'delivered' | 'again' | 'failed' | 'stale'> {
  const [word] = await run(store, endWebhookScript, {
    jobId: due.id,
    accountId: accountOfReceiver(due.receiver),
    receiver: due.receiver,
    member: memberOf(due),
    attempt,
    verdict: ended.verdict,
    status: ended.status ?? '',
    gap: gapMs,
    max: maxWebhookAttempts,
  });
  return text(word) as 'delivered' | 'again' | 'failed' | 'stale';
}

/** Receivers are `account@host/path`. */
function accountOfReceiver(receiver: string): string {
  return receiver.slice(0, Math.max(0, receiver.indexOf('@')));
}
