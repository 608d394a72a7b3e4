import { script } from '../script.ts';

/**
 * Records that an attempt begins, before anything is started. Only the next attempt of a job that was taken begins, once.
 * Answers {'started'}, {'already_started'}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
export const start = script(
  'start',
  'always',
  ['lead', 'job', 'active', 'attempts'] as const,
  ['holder', 'jobId', 'attempt', 'deadline', 'jobChannel'] as const,
  /* lua */ `
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
local seen = redis.call('HMGET', job, 'status', 'attempt')
if not seen[1] then return { 'not_found' } end
if seen[1] ~= 'QueuedJob' and seen[1] ~= 'Running' then return { 'already_ended' } end
local last = seen[2] or '0'
if last == attempt then return { 'already_started' } end
if tonumber(last) + 1 ~= tonumber(attempt) or not redis.call('ZSCORE', active, jobId) then return { 'stale' } end
redis.call('HSET', job, 'attempt', attempt, 'deadline', deadline, 'storing_since', '')
redis.call('HINCRBY', job, 'revision', 1)
redis.call('RPUSH', attempts, cjson.encode({ attempt = tonumber(attempt), started_at = now }))
redis.call('PUBLISH', jobChannel, jobId)
return { 'started' }
`,
);
