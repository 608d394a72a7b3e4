import { script } from '../script.ts';

/**
 * Keeps what the worker of the open attempt says of its end, for whoever leads; what it said last counts. It says nothing any
 * more of an attempt that is counted, or of a job that is over.
 * Answers {'told'}, {'stale'}, {'already_ended'} or {'not_found'}.
 */
export const tell = script(
  'tell',
  'always',
  ['job'] as const,
  ['jobId', 'attempt', 'verdict', 'workChannel'] as const,
  /* lua */ `
local seen = redis.call('HMGET', job, 'status', 'attempt', 'failures', 'interruptions')
if not seen[1] then return { 'not_found' } end
if seen[1] ~= 'QueuedJob' and seen[1] ~= 'Running' then return { 'already_ended' } end
if seen[2] ~= attempt or tonumber(attempt) <= tonumber(seen[3] or 0) + tonumber(seen[4] or 0) then return { 'stale' } end
redis.call('HSET', job, 'verdict', verdict)
redis.call('PUBLISH', workChannel, jobId)
return { 'told' }
`,
);
