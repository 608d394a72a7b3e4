import { script } from '../script.ts';

/**
 * Removes an account without open jobs or holds: its slug is free from now on, its keys are to be deleted next; its record
 * and ledger stay. A purchase that was not tried yet is dropped; one that was may be paid, and has to end first.
 * Answers {'removed'}, {'not_found'}, {'has_open_jobs'} or {'in_use'}.
 */
export const removeAccount = script(
  'remove-account',
  'always',
  ['account', 'open', 'slugs', 'removed', 'leaving', 'planUsers', 'periods', 'ready', 'topup', 'purchases'] as const,
  ['accountId', 'slug'] as const,
  /* lua */ `
local seen = redis.call('HMGET', account, 'held', 'plan')
if redis.call('HGET', slugs, slug) ~= accountId then return { 'not_found' } end
if redis.call('ZCARD', open) > 0 or tonumber(seen[1]) > 0 then return { 'has_open_jobs' } end
if redis.call('ZSCORE', purchases, accountId) and redis.call('HGET', topup, 'purchase_attempts') ~= '0' then return { 'in_use' } end
redis.call('ZREM', purchases, accountId)
redis.call('HSET', topup, 'enabled', '0', 'purchase', '')
redis.call('HDEL', slugs, slug)
local earlier = redis.call('HGET', removed, slug)
redis.call('HSET', removed, slug, earlier and accountId .. ' ' .. earlier or accountId)
redis.call('SADD', leaving, accountId)
redis.call('HSET', account, 'removed_at', now)
if seen[2] ~= '' then redis.call('HINCRBY', planUsers, seen[2], -1) end
redis.call('HSET', account, 'plan', '', 'period_end', '')
redis.call('ZREM', periods, accountId)
redis.call('ZREM', ready, accountId)
return { 'removed' }
`,
);
