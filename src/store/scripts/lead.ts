import { script } from '../script.ts';

/**
 * Takes or keeps the leadership for some milliseconds, or gives it up with 0. Answers {'leading'} or {'following'}.
 */
export const lead = script(
  'lead',
  'always',
  ['lead'] as const,
  ['holder', 'milliseconds'] as const,
  /* lua */ `
local present = redis.call('GET', lead)
if present and present ~= holder then return { 'following' } end
if tonumber(milliseconds) <= 0 then
  redis.call('DEL', lead)
  return { 'following' }
end
redis.call('SET', lead, holder, 'PX', milliseconds)
return { 'leading' }
`,
);
