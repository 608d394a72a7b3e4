import { script } from '../script.ts';

/**
 * Notes what is seen or told of the open attempt: that it runs, its stage, speed and rest, and its progress, which never falls and
 * is at most 99 (D20). Answers {'noted', revision}, {'stale'}, {'already_ended'} or {'not_found'}.
 */
export const note = script(
  'note',
  'always',
  ['job'] as const,
  ['jobId', 'attempt', 'running', 'progress', 'stage', 'speed', 'eta', 'jobChannel'] as const,
  /* lua */ `
local seen = redis.call('HMGET', job, 'status', 'attempt', 'progress')
if not seen[1] then return { 'not_found' } end
if seen[1] ~= 'QueuedJob' and seen[1] ~= 'Running' then return { 'already_ended' } end
if (seen[2] or '0') ~= attempt then return { 'stale' } end
if seen[1] == 'QueuedJob' and running == '1' then redis.call('HSET', job, 'status', 'Running', 'started_at', now) end
local raised = math.max(tonumber(seen[3] or 0), math.min(99, math.floor(tonumber(progress))))
redis.call('HSET', job, 'progress', raised, 'stage', stage, 'speed_bytes', speed, 'eta_seconds', eta)
local revision = redis.call('HINCRBY', job, 'revision', 1)
redis.call('PUBLISH', jobChannel, jobId)
return { 'noted', revision }
`,
);
