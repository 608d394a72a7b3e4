import { refuse } from '../../base/errors.ts';
import type { Plan } from '../../model/account.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Creates or changes a plan, for every account that has it from the next request on. Answers {'set'} or {'too_many'}. */
const setPlanScript = script(
  'set-plan',
  'needs memory',
  ['plans'] as const,
  ['plan', 'json'] as const,
  /* lua */ `
if redis.call('HEXISTS', plans, plan) == 0 and redis.call('HLEN', plans) >= ${recordLimits.plans} then return { 'too_many' } end
redis.call('HSET', plans, plan, json)
return { 'set' }
`,
);

/** Throws `too_many`. */
export async function setPlan(store: RecordStore, plan: Plan): Promise<void> {
  const [word] = await run(store, setPlanScript, { plan: plan.name, json: JSON.stringify(plan) });
  if (word === 'too_many')
    throw refuse('too_many', `There are ${recordLimits.plans} plans, which is the limit: remove one`);
}
