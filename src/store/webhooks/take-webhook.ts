import { maxWebhookAttempts } from '../../model/webhook-attempts.ts';
import { type RecordStore, run, script, text } from '../script.ts';
import { type DueWebhook, memberOf } from './due-webhooks.ts';

/**
 * Claims the delivery of a due webhook: counts the attempt before it is sent, and leases it. When a sender died during
 * the last attempt, the delivery has failed. Answers {'taken', attempt, when it was due, now, when the one before was claimed or ''}, {'failed'}, {'early'} or {'gone'}.
 */
const takeWebhookScript = script('take-webhook', 'always', ['webhooks', 'webhook'], ['member', 'lease', 'max'])`
local at = redis.call('ZSCORE', webhooks, member)
if not at then return { 'gone' } end
if now < tonumber(at) then return { 'early' } end
local attempts, last_at = unpack(redis.call('HMGET', webhook, 'attempts', 'last_at'))
local seen = tonumber(attempts or max)
if seen >= tonumber(max) then
  redis.call('HSET', webhook, 'state', 'failed', 'next_at', '')
  redis.call('ZREM', webhooks, member)
  return { 'failed' }
end
undos[1] = function() redis.pcall('ZADD', webhooks, at, member) end
redis.call('ZADD', webhooks, now + tonumber(lease), member)
redis.call('HSET', webhook, 'attempts', seen + 1, 'next_at', now + tonumber(lease), 'last_at', now)
return { 'taken', seen + 1, at, now, last_at or '' }
`;

export interface TakenAttempt {
  /** Its number, 1 or more. */
  readonly attempt: number;
  /** When it was due, in milliseconds. */
  readonly dueAt: number;
  /** When it was claimed, in milliseconds: another claim of the same number is a later one. */
  readonly takenAt: number;
  /** When the one before was claimed; '' for none. */
  readonly takenBefore: string;
}

/** Claims one attempt of a delivery; `null` when none is due. `onFailed` is called when its sender died during the last one. */
export async function takeWebhook(
  store: RecordStore,
  due: DueWebhook,
  leaseMs: number,
  onFailed: () => void = () => {},
): Promise<TakenAttempt | null> {
  const reply = await run(store, takeWebhookScript, {
    jobId: due.id,
    member: memberOf(due),
    lease: leaseMs,
    max: maxWebhookAttempts,
  });
  if (reply[0] === 'failed') onFailed();
  if (reply[0] !== 'taken') return null;
  const [attempt, dueAt, takenAt] = reply.slice(1, 4).map(Number) as [number, number, number];
  return { attempt, dueAt, takenAt, takenBefore: text(reply[4]) };
}
