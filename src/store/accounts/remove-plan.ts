import { refuse } from '../../base/errors.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';

/** Removes a plan that no account has. Answers {'removed'}, {'not_found'} or {'in_use'}. */
const removePlanScript = notedScript('remove-plan', 'always', ['plans', 'planUsers'], ['plan'])`
if redis.call('HEXISTS', plans, plan) == 0 then return { 'not_found' } end
if tonumber(redis.call('HGET', planUsers, plan) or '0') > 0 then return { 'in_use' } end
if note_change() then return { 'audit_full' } end
redis.call('HDEL', planUsers, plan)
redis.call('HDEL', plans, plan)
return { 'removed' }
`;

export async function removePlan(store: RecordStore, name: string): Promise<void> {
  const [word] = await runNoted(store, removePlanScript, { plan: name }, { action: 'plan.remove', target: name });
  if (word === 'not_found') throw refuse('not_found', `There is no plan ${name}`);
  if (word === 'in_use') throw refuse('in_use', `The plan ${name} is still the plan of an account`);
}
