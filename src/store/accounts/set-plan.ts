import type { Plan } from '../../model/account.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Creates or changes a plan, for every account that has it from the next request on. Answers {'set'}. */
const setPlanScript = script(
  'set-plan',
  'needs memory',
  ['plans'] as const,
  ['plan', 'json'] as const,
  /* lua */ `
redis.call('HSET', plans, plan, json)
return { 'set' }
`,
);

export async function setPlan(store: RecordStore, plan: Plan): Promise<void> {
  await run(store, setPlanScript, { plan: plan.name, json: JSON.stringify(plan) });
}
