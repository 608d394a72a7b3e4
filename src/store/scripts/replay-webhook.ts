import { script } from '../script.ts';

/**
 * Makes a delivery that has ended due again, as if nothing had been sent; its id stays. Answers {'replayed'},
 * {'not_ended'} while attempts are left, or {'not_found'}.
 */
export const replayWebhook = script(
  'replay-webhook',
  'needs room',
  ['job', 'webhooks', 'webhook'] as const,
  ['jobId'] as const,
  /* lua */ `
local receiver = redis.call('HGET', job, 'receiver')
local state = redis.call('HGET', webhook, 'state')
if not receiver or not state then return { 'not_found' } end
if state == 'due' then return { 'not_ended' } end
redis.call('HSET', webhook, 'state', 'due', 'attempts', 0, 'last_status', '', 'next_at', now, 'last_at', '')
redis.call('ZADD', webhooks, now, receiver .. '/' .. jobId)
return { 'replayed' }
`,
);
