import { fair, fairKeys } from '../lua/fair.ts';
import { script } from '../script.ts';

/**
 * Ends an attempt that another one follows: gives its slot back and lets the job wait until its time, or puts it at the
 * head of its account's queue at once. Counts a failure or an interruption (D74), once an attempt.
 * Answers {'waiting'}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
export const retry = script(
  'retry',
  'always',
  [...fairKeys, 'lead', 'job', 'active', 'delayed', 'attempts'] as const,
  ['holder', 'accountId', 'jobId', 'attempt', 'counts', 'code', 'notBefore', 'jobChannel', 'workChannel'] as const,
  /* lua */ `${fair}
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
local seen = redis.call('HMGET', job, 'status', 'attempt', 'account', 'created_at', 'failures', 'interruptions')
if not seen[1] or seen[3] ~= accountId then return { 'not_found' } end
if seen[1] ~= 'QueuedJob' and seen[1] ~= 'Running' then return { 'already_ended' } end
if tonumber(attempt) <= tonumber(seen[5] or 0) + tonumber(seen[6] or 0) then return { 'stale' } end
if seen[2] ~= attempt or redis.call('ZREM', active, jobId) == 0 then return { 'stale' } end
redis.call('HINCRBY', job, counts == 'failure' and 'failures' or 'interruptions', 1)
redis.call('HSET', job, 'not_before', notBefore, 'deadline', '', 'stage', '', 'speed_bytes', '', 'eta_seconds', '',
  'storing_since', '', 'verdict', '', 'metadata', '', 'delivered', '')
redis.call('HINCRBY', job, 'revision', 1)
redis.call('RPUSH', attempts, cjson.encode({ attempt = tonumber(attempt), ended_at = now, code = code, counts = counts }))
if tonumber(notBefore) > now then redis.call('ZADD', delayed, notBefore, jobId)
else redis.call('ZADD', queue, seen[4], jobId) end
local fields = redis.call('HMGET', account, 'concurrency', 'tag')
stand(accountId, redis.call('HINCRBY', account, 'running', -1), fields[1], fields[2])
redis.call('PUBLISH', jobChannel, jobId)
redis.call('PUBLISH', workChannel, '')
return { 'waiting' }
`,
);
