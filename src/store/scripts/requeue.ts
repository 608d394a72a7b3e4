import { fair, fairKeys } from '../lua/fair.ts';
import { script } from '../script.ts';

/**
 * Puts a job whose wait before another attempt is over back at the head of its account's queue.
 * Answers {'queued'}, {'early'} or {'not_found'}.
 */
export const requeue = script(
  'requeue',
  'always',
  [...fairKeys, 'job', 'delayed'] as const,
  ['accountId', 'jobId'] as const,
  /* lua */ `${fair}
local at = redis.call('ZSCORE', delayed, jobId)
local seen = redis.call('HMGET', job, 'account', 'created_at')
if not at or seen[1] ~= accountId then return { 'not_found' } end
if now < tonumber(at) then return { 'early' } end
redis.call('ZREM', delayed, jobId)
redis.call('ZADD', queue, seen[2], jobId)
local fields = redis.call('HMGET', account, 'running', 'concurrency', 'tag')
stand(accountId, tonumber(fields[1]), fields[2], fields[3])
return { 'queued' }
`,
);
