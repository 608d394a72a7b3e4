import { fair, fairKeys } from '../lua/fair.ts';
import { script } from '../script.ts';

/**
 * Takes the oldest waiting job of the account whose turn it is. The job keeps a slot of the account and of the whole
 * system until it is settled or waits for another attempt.
 * Answers {'taken', job, whose turn is next or ''}, {'full'}, {'again', whose turn it is or ''}, {'not_leading'}.
 */
export const take = script(
  'take',
  'always',
  [...fairKeys, 'lead', 'active'] as const,
  ['holder', 'accountId', 'slots'] as const,
  /* lua */ `${fair}
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
if redis.call('ZCARD', active) >= tonumber(slots) then return { 'full' } end
local first = redis.call('ZRANGE', ready, 0, 0, 'WITHSCORES')
local id = redis.call('ZRANGE', queue, 0, 0)[1]
if first[1] ~= accountId or not id then return { 'again', first[1] or '' } end
local seen = redis.call('HMGET', account, 'weight', 'concurrency')
redis.call('ZREM', queue, id)
redis.call('ZADD', active, now, id)
redis.call('SET', turn, first[2])
local tag = tonumber(first[2]) + 1 / tonumber(seen[1])
redis.call('HSET', account, 'tag', string.format('%.17g', tag))
stand(accountId, redis.call('HINCRBY', account, 'running', 1), seen[2], tag)
return { 'taken', id, redis.call('ZRANGE', ready, 0, 0)[1] or '' }
`,
);
