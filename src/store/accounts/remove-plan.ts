import { refuse } from '../../base/errors.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Removes a plan that no account has. Answers {'removed'}, {'not_found'} or {'in_use'}. */
const removePlanScript = script(
  'remove-plan',
  'always',
  ['plans', 'planUsers'] as const,
  ['plan'] as const,
  /* lua */ `
if redis.call('HEXISTS', plans, plan) == 0 then return { 'not_found' } end
if tonumber(redis.call('HGET', planUsers, plan) or '0') > 0 then return { 'in_use' } end
redis.call('HDEL', planUsers, plan)
redis.call('HDEL', plans, plan)
return { 'removed' }
`,
);

export async function removePlan(store: RecordStore, name: string): Promise<void> {
  const [word] = await run(store, removePlanScript, { plan: name });
  if (word === 'not_found') throw refuse('not_found', `There is no plan ${name}`);
  if (word === 'in_use') throw refuse('in_use', `The plan ${name} is still the plan of an account`);
}
