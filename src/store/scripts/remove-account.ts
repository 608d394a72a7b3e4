import { script } from '../script.ts';

/**
 * Removes an account without open jobs or holds: its slug is free and its keys are unknown from now on; its record and
 * ledger stay. Answers {'removed'}, {'not_found'} or {'has_open_jobs'}.
 */
export const removeAccount = script(
  'remove-account',
  'always',
  ['account', 'open', 'slugs', 'removed', 'planUsers', 'periods', 'ready'] as const,
  ['accountId', 'slug'] as const,
  /* lua */ `
local seen = redis.call('HMGET', account, 'held', 'plan')
if redis.call('HGET', slugs, slug) ~= accountId then return { 'not_found' } end
if redis.call('ZCARD', open) > 0 or tonumber(seen[1]) > 0 then return { 'has_open_jobs' } end
redis.call('HDEL', slugs, slug)
redis.call('HSET', removed, slug, accountId)
redis.call('HSET', account, 'removed_at', now)
if seen[2] ~= '' then redis.call('HINCRBY', planUsers, seen[2], -1) end
redis.call('HSET', account, 'plan', '', 'period_end', '')
redis.call('ZREM', periods, accountId)
redis.call('ZREM', ready, accountId)
return { 'removed' }
`,
);
