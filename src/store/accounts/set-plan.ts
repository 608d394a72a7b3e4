import { refuse } from '../../base/errors.ts';
import type { Plan } from '../../model/account.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';

/** Creates or changes a plan, for every account that has it from the next request on. Answers {'set'}, {'too_many'} or {'other'} when it is not as expected. */
const setPlanScript = notedScript('set-plan', 'always', ['plans'], ['plan', 'json', 'expected'])`
if expected ~= '' and (redis.call('HGET', plans, plan) or 'none') ~= expected then return { 'other' } end
if redis.call('HEXISTS', plans, plan) == 0 and redis.call('HLEN', plans) >= ${recordLimits.plans} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
redis.call('HSET', plans, plan, json)
return { 'set' }
`;

/**
 * Returns false, and changes nothing, when the text of the plan is not as it was read: `expected`, with `null` for a plan that did not exist.
 * Without that it is set whatever it is. Throws `too_many`.
 */
export async function setPlan(store: RecordStore, plan: Plan, expected: string | null = ''): Promise<boolean> {
  const { name: target, ...change } = plan;
  const values = { plan: target, json: JSON.stringify(plan), expected: expected ?? 'none' };
  const [word] = await runNoted(store, setPlanScript, values, { action: 'plan.set', target, change });
  if (word === 'too_many')
    throw refuse('too_many', `There are ${recordLimits.plans} plans, which is the limit: remove one`);
  return word === 'set';
}
