import type { Key } from '../../model/account.ts';
import { keyOf } from '../accounts/read-keys.ts';
import { planOf } from '../accounts/read-plans.ts';
import { type AccountSnapshot, snapshotOf } from '../accounts/read-snapshot.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { pairs, type RecordStore, run, script, text } from '../script.ts';
import { authorizeArgNames, authorizeFreeLua, authorizeKeyNames, type Caller, readAuthorized } from './authorize.ts';

/**
 * Authorizes a free call and reads all numbers of the account at one moment. Answers {'entered', '', '', rates, fields of the
 * account, fields of the packs, fields of the key, JSON of the plan or ''}, {'roll'} or a refusal.
 */
const readUsageScript = script(
  'read-usage',
  'light',
  [...authorizeKeyNames, 'packs'],
  authorizeArgNames,
)`${authorizeFreeLua({}, true)}
return { 'entered', '', '', rates, redis.call('HGETALL', account), redis.call('HGETALL', packs),
  redis.call('HGETALL', key), plan_json or '' }
`;

/** Authorizes the caller and reads the usage of its account, in one step. */
export async function readUsage(store: RecordStore, caller: Caller) {
  const reply = await withRolledPeriod(store, caller.accountId, () => run(store, readUsageScript, caller));
  return readAuthorized(reply, ([account, packs, key, planJson]): AccountSnapshot & { readonly key: Key } => {
    const fields = pairs(account);
    const plan = planJson ? planOf(text(planJson), { name: text(fields.plan), quota: Number(fields.quota) }) : null;
    return { ...snapshotOf(fields, pairs(packs), plan), key: keyOf(pairs(key)) };
  });
}
