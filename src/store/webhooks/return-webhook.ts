import { type RecordStore, run, script } from '../script.ts';
import { type DueWebhook, memberOf } from './due-webhooks.ts';
import type { TakenAttempt } from './take-webhook.ts';

/**
 * Gives back an attempt of which no receiver has heard: it is due as it was before, and counts no more. An attempt that was given back
 * already, or whose lease another one has taken over, changes nothing. Answers {'returned'} or {'stale'}.
 */
const returnWebhookScript = script(
  'return-webhook',
  'always',
  ['webhooks', 'webhook'],
  ['member', 'attempt', 'dueAt', 'takenAt', 'takenBefore'],
)`
local attempts, last_at = unpack(redis.call('HMGET', webhook, 'attempts', 'last_at'))
if attempts ~= attempt or last_at ~= takenAt or not redis.call('ZSCORE', webhooks, member) then return { 'stale' } end
redis.call('ZADD', webhooks, dueAt, member)
redis.call('HSET', webhook, 'attempts', string.format('%d', attempt - 1), 'next_at', dueAt, 'last_at', takenBefore)
return { 'returned' }
`;

/** Gives an attempt back that was claimed and not sent; may be repeated. */
export async function returnWebhook(store: RecordStore, due: DueWebhook, taken: TakenAttempt): Promise<void> {
  await run(store, returnWebhookScript, { jobId: due.id, member: memberOf(due), ...taken });
}
