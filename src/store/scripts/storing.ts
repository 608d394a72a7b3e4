import { script } from '../script.ts';

/**
 * Notes that the attempt's worker has ended well and since when its object is waited for (D75). The first time stays.
 * Answers {'storing', since}, {'stale'}, {'already_ended'}, {'not_found'} or {'not_leading'}.
 */
export const storing = script(
  'storing',
  'always',
  ['lead', 'job'] as const,
  ['holder', 'attempt', 'metadata', 'delivered'] as const,
  /* lua */ `
if redis.call('GET', lead) ~= holder then return { 'not_leading' } end
local seen = redis.call('HMGET', job, 'status', 'attempt', 'storing_since')
if not seen[1] then return { 'not_found' } end
if seen[1] ~= 'QueuedJob' and seen[1] ~= 'Running' then return { 'already_ended' } end
if (seen[2] or '0') ~= attempt then return { 'stale' } end
if (seen[3] or '') ~= '' then return { 'storing', seen[3] } end
redis.call('HSET', job, 'storing_since', now, 'metadata', metadata, 'delivered', delivered)
return { 'storing', now }
`,
);
