import { script } from '../script.ts';

/**
 * Moves the record's layout from one number to the next; a record without a number begins at the newest.
 * Answers {'at', number}: who asks compares it with the numbers it knows.
 */
export const migrate = script(
  'migrate',
  'always',
  ['schema'] as const,
  ['from', 'to'] as const,
  /* lua */ `
local present = redis.call('GET', schema)
if not present or present == from then
  redis.call('SET', schema, to)
  return { 'at', to }
end
return { 'at', present }
`,
);
