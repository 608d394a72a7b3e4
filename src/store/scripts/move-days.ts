import { script } from '../script.ts';

/**
 * Removes the oldest entries of a stream, up to one of them, and notes in the same step where they were moved to.
 * `from` is the last entry that was moved before: when another has been moved since, nothing is changed.
 * Answers {'moved'} or {'stale'}.
 */
export const moveDays = script(
  'move-days',
  'always',
  ['stream', 'list', 'days'] as const,
  ['from', 'after', 'json', 'member', 'at'] as const,
  /* lua */ `
local newest = redis.call('LINDEX', list, -1)
if (newest and cjson.decode(newest).last or '0-0') ~= from then return { 'stale' } end
redis.call('RPUSH', list, json)
if member ~= '' then redis.call('ZADD', days, at, member) end
redis.call('XTRIM', stream, 'MINID', after)
return { 'moved' }
`,
);
