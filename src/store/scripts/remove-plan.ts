import { script } from '../script.ts';

/** Removes a plan that no account has. Answers {'removed'}, {'not_found'} or {'in_use'}. */
export const removePlan = script(
  'remove-plan',
  'always',
  ['plans', 'planUsers'] as const,
  ['plan'] as const,
  /* lua */ `
if redis.call('HEXISTS', plans, plan) == 0 then return { 'not_found' } end
if tonumber(redis.call('HGET', planUsers, plan) or '0') > 0 then return { 'in_use' } end
redis.call('HDEL', plans, plan)
redis.call('HDEL', planUsers, plan)
return { 'removed' }
`,
);
