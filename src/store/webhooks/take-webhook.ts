import { keys } from '../keys.ts';
import { type RecordStore, run, script } from '../script.ts';
import type { DueWebhook } from './due-webhooks.ts';

/**
 * Claims the delivery of a webhook that is due: counts the attempt before it is sent, and leases it. A sender that died
 * after its last attempt has failed. Answers {'taken', attempt}, {'failed'}, {'early'} or {'gone'}.
 */
const takeWebhookScript = script(
  'take-webhook',
  'always',
  ['webhooks', 'webhook'] as const,
  ['member', 'lease', 'most'] as const,
  /* lua */ `
local at = redis.call('ZSCORE', webhooks, member)
if not at then return { 'gone' } end
if now < tonumber(at) then return { 'early' } end
local seen = tonumber(redis.call('HGET', webhook, 'attempts') or most)
if seen >= tonumber(most) then
  redis.call('ZREM', webhooks, member)
  redis.call('HSET', webhook, 'state', 'failed', 'next_at', '')
  return { 'failed' }
end
redis.call('HSET', webhook, 'attempts', seen + 1, 'next_at', now + tonumber(lease), 'last_at', now)
redis.call('ZADD', webhooks, now + tonumber(lease), member)
return { 'taken', seen + 1 }
`,
);

export const maxWebhookAttempts = 3;

/** Claims one attempt of a delivery, counted before it is sent; `null` when there is none to make. */
export async function takeWebhook(
  store: RecordStore,
  due: DueWebhook,
  leaseMilliseconds: number,
): Promise<number | null> {
  const reply = await run(
    store,
    takeWebhookScript,
    { webhooks: keys.webhooks, webhook: keys.webhook(due.jobId) },
    { member: `${due.receiver}/${due.jobId}`, lease: leaseMilliseconds, most: maxWebhookAttempts },
  );
  return reply[0] === 'taken' ? Number(reply[1]) : null;
}
