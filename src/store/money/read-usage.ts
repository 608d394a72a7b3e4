import type { Key, Plan } from '../../model/account.ts';
import { type Caller, doorKeys, type Rates, type Refused, readRates, readRefused } from '../access/authorize.ts';
import { accountOf } from '../accounts/read-accounts.ts';
import { keyOf } from '../accounts/read-keys.ts';
import { keys } from '../keys.ts';
import { doorArgs, doorKeys as doorKeyNames, freeDoor } from '../lua/door.ts';
import { pairs, type RecordStore, run, script, text } from '../script.ts';
import { type AccountSnapshot, parseBalances } from './read-balances.ts';
import { rolling } from './roll-period.ts';

/**
 * The usage snapshot: the door and all its numbers in one call. Answers {'entered', '', '', limits ×4, fields of the
 * account, fields of the packs, fields of the key, JSON of the plan or ''}, {'roll'} when the period must be rolled first,
 * or a refusal.
 */
const usageScript = script(
  'usage',
  'always',
  [...doorKeyNames, 'packs'],
  doorArgs,
  /* lua */ `${freeDoor({ rolls: true })}
return { 'entered', '', '', limits[1], limits[2], limits[3], limits[4], redis.call('HGETALL', account),
  redis.call('HGETALL', packs), redis.call('HGETALL', key), plan_json or '' }
`,
);

type UsageSnapshot = (AccountSnapshot & { readonly key: Key; readonly rates: Rates }) | Refused;

/** Judges the caller and reads the usage of its account, in one call. */
export async function readUsage(store: RecordStore, caller: Caller): Promise<UsageSnapshot> {
  const reply = await rolling(store, caller.account, () =>
    run(store, usageScript, { ...doorKeys(caller), packs: keys.packs(caller.account) }, { accountId: caller.account }),
  );
  const refused = readRefused(reply);
  if (refused) return refused;
  const plan = reply[10] ? (JSON.parse(text(reply[10])) as Plan) : null;
  const fields = pairs(reply[7]);
  return {
    account: accountOf(fields),
    plan,
    balances: { ...parseBalances(fields, pairs(reply[8])), quota: plan?.quota ?? 0 },
    key: keyOf(pairs(reply[9])),
    rates: readRates(reply),
  };
}
