import { refuse } from '../../base/errors.ts';
import type { Plan } from '../../model/account.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../lua/note-change.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Creates or changes a plan, for every account that has it from the next request on. Answers {'set'}, {'too_many'} or {'other'} when it is not as expected. */
const setPlanScript = script(
  'set-plan',
  'always',
  ['plans', ...noteKeyNames] as const,
  ['plan', 'json', 'expected', ...noteArgNames] as const,
  /* lua */ `${noteChange}
if expected ~= '' and (redis.call('HGET', plans, plan) or 'none') ~= expected then return { 'other' } end
if redis.call('HEXISTS', plans, plan) == 0 and redis.call('HLEN', plans) >= ${recordLimits.plans} then return { 'too_many' } end
if note_change() then return { 'audit_full' } end
redis.call('HSET', plans, plan, json)
return { 'set' }
`,
);

/**
 * Returns false, and changes nothing, when the text of the plan is not as it was read: `expected`, with `null` for a plan that did not exist.
 * Without that it is set whatever it is. Throws `too_many`.
 */
export async function setPlan(store: RecordStore, plan: Plan, expected: string | null = ''): Promise<boolean> {
  const { name: target, ...change } = plan;
  const noted = noteOf(store, '', { action: 'plan.set', target, change });
  const json = JSON.stringify(plan);
  const reply = await run(store, setPlanScript, { plan: target, json, expected: expected ?? 'none', ...noted });
  requireNoted(reply);
  if (reply[0] === 'too_many')
    throw refuse('too_many', `There are ${recordLimits.plans} plans, which is the limit: remove one`);
  return reply[0] === 'set';
}
