import type { Key, Plan } from '../../model/account.ts';
import { accountOf } from '../accounts/read-accounts.ts';
import { keyOf } from '../accounts/read-keys.ts';
import type { AccountSnapshot } from '../accounts/read-snapshot.ts';
import { parseBalances } from '../money/read-balances.ts';
import { withRolledPeriod } from '../money/roll-period.ts';
import { pairs, type RecordStore, run, script, text } from '../script.ts';
import {
  authorizeArgNames,
  authorizeFreeLua,
  authorizeKeyNames,
  type Caller,
  type Rates,
  type RefusedCall,
  readRates,
  readRefused,
} from './authorize.ts';

/**
 * Authorizes a free call and reads all numbers of the account at one moment. Answers {'entered', '', '', rates, fields of the
 * account, fields of the packs, fields of the key, JSON of the plan or ''}, {'roll'} or a refusal.
 */
const usageScript = script(
  'usage',
  'always',
  [...authorizeKeyNames, 'packs'],
  authorizeArgNames,
  /* lua */ `${authorizeFreeLua({}, true)}
return { 'entered', '', '', rates, redis.call('HGETALL', account), redis.call('HGETALL', packs),
  redis.call('HGETALL', key), plan_json or '' }
`,
);

type UsageSnapshot = (AccountSnapshot & { readonly key: Key; readonly rates: Rates }) | RefusedCall;

/** Authorizes the caller and reads the usage of its account, in one step. */
export async function readUsage(store: RecordStore, caller: Caller): Promise<UsageSnapshot> {
  const reply = await withRolledPeriod(store, caller.accountId, () => run(store, usageScript, caller));
  const refused = readRefused(reply);
  if (refused) return refused;
  const [, , , , account, packs, key, planJson] = reply;
  const plan = planJson ? (JSON.parse(text(planJson)) as Plan) : null;
  const fields = pairs(account);
  return {
    account: accountOf(fields),
    plan,
    balances: { ...parseBalances(fields, pairs(packs)), quota: plan?.quota ?? 0 },
    key: keyOf(pairs(key)),
    rates: readRates(reply),
  };
}
