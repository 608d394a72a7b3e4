import { refuse } from '../../base/errors.ts';
import { noteArgNames, noteChange, noteKeyNames, noteOf, requireNoted } from '../lua/note-change.ts';
import { type RecordStore, run, script } from '../script.ts';

/** Removes a plan that no account has. Answers {'removed'}, {'not_found'} or {'in_use'}. */
const removePlanScript = script(
  'remove-plan',
  'always',
  ['plans', 'planUsers', ...noteKeyNames] as const,
  ['plan', ...noteArgNames] as const,
  /* lua */ `${noteChange}
if redis.call('HEXISTS', plans, plan) == 0 then return { 'not_found' } end
if tonumber(redis.call('HGET', planUsers, plan) or '0') > 0 then return { 'in_use' } end
if note_change() then return { 'audit_full' } end
redis.call('HDEL', planUsers, plan)
redis.call('HDEL', plans, plan)
return { 'removed' }
`,
);

export async function removePlan(store: RecordStore, name: string): Promise<void> {
  const noted = noteOf(store, '', { action: 'plan.remove', target: name });
  const reply = await run(store, removePlanScript, { plan: name, ...noted });
  requireNoted(reply);
  const [word] = reply;
  if (word === 'not_found') throw refuse('not_found', `There is no plan ${name}`);
  if (word === 'in_use') throw refuse('in_use', `The plan ${name} is still the plan of an account`);
}
