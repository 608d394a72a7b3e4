import { type RecordStore, run, script } from '../script.ts';
import type { DueWebhook } from './due-webhooks.ts';

/**
 * Claims the delivery of a due webhook: counts the attempt before it is sent, and leases it. When a sender died during
 * the last attempt, the delivery has failed. Answers {'taken', attempt, when it was due, now}, {'failed'}, {'early'} or {'gone'}.
 */
const takeWebhookScript = script(
  'take-webhook',
  'always',
  ['webhooks', 'webhook'] as const,
  ['member', 'lease', 'max'] as const,
  /* lua */ `
local at = redis.call('ZSCORE', webhooks, member)
if not at then return { 'gone' } end
if now < tonumber(at) then return { 'early' } end
local seen = tonumber(redis.call('HGET', webhook, 'attempts') or max)
if seen >= tonumber(max) then
  redis.call('HSET', webhook, 'state', 'failed', 'next_at', '')
  redis.call('ZREM', webhooks, member)
  return { 'failed' }
end
undos[1] = function() redis.pcall('ZADD', webhooks, at, member) end
redis.call('ZADD', webhooks, now + tonumber(lease), member)
redis.call('HSET', webhook, 'attempts', seen + 1, 'next_at', now + tonumber(lease), 'last_at', now)
return { 'taken', seen + 1, at, now }
`,
);

export const maxWebhookAttempts = 3;

/** An attempt that was claimed. */
export interface TakenAttempt {
  /** Its number, 1 or more. */
  readonly attempt: number;
  /** When it was due, in milliseconds. */
  readonly dueAt: number;
  /** When it was claimed, in milliseconds: another claim of the same number is a later one. */
  readonly takenAt: number;
}

/** Claims one attempt of a delivery; `null` when none is due. */
export async function takeWebhook(store: RecordStore, due: DueWebhook, leaseMs: number): Promise<TakenAttempt | null> {
  const reply = await run(store, takeWebhookScript, {
    jobId: due.jobId,
    member: `${due.receiver}/${due.jobId}`,
    lease: leaseMs,
    max: maxWebhookAttempts,
  });
  if (reply[0] !== 'taken') return null;
  return { attempt: Number(reply[1]), dueAt: Number(reply[2]), takenAt: Number(reply[3]) };
}
