import { refuse } from '../../base/errors.ts';
import type { Account, Plan } from '../../model/account.ts';
import type { AccountBalances, Pack } from '../../model/money.ts';
import { accountOf } from '../accounts/read-accounts.ts';
import { keys } from '../keys.ts';
import type { ArchivedPart } from '../log/archived-parts.ts';
import { number, pairs, type RecordStore, run, script, text } from '../script.ts';
import { rollPeriod } from './roll-period.ts';

/**
 * Reads the money of one account at one moment. Answers {'read', fields of the account, fields of the packs, number of its
 * open jobs and synchronous calls, JSON of the newest archived part of its ledger or ''}.
 */
const readBalancesScript = script(
  'read-books',
  'always',
  ['account', 'packs', 'open', 'calls', 'days'] as const,
  ['accountId'] as const,
  /* lua */ `
local in_hand = redis.call('ZCARD', open)
for _, member in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
  if string.sub(member, 1, #accountId + 1) == accountId .. '/' then in_hand = in_hand + 1 end
end
return { 'read', redis.call('HGETALL', account), redis.call('HGETALL', packs), in_hand,
  redis.call('LINDEX', days, -1) or '' }
`,
);

export interface RawBalances {
  readonly fields: Record<string, string>;
  readonly packs: Record<string, string>;
  /** Number of open jobs and of synchronous calls under way: each has one hold. */
  readonly open: number;
  /** Newest archived part of the ledger. */
  readonly moved: ArchivedPart | null;
}

export async function readRawBalances(store: RecordStore, accountId: string): Promise<RawBalances> {
  const reply = await run(
    store,
    readBalancesScript,
    {
      account: keys.account(accountId),
      packs: keys.packs(accountId),
      open: keys.open(accountId),
      calls: keys.calls,
      days: keys.ledgerDays(accountId),
    },
    { accountId },
  );
  const fields = pairs(reply[1]);
  if (fields.id === undefined) throw refuse('not_found', 'There is no such account');
  const moved = reply[4] ? (JSON.parse(text(reply[4])) as ArchivedPart) : null;
  return { fields, packs: pairs(reply[2]), open: Number(reply[3]), moved };
}

/** Parses the balances in the fields of an account and of its packs. */
export function parseBalances(
  fields: Readonly<Record<string, string>>,
  packs: Readonly<Record<string, string>>,
): AccountBalances {
  return {
    quota: Number(fields.quota),
    used: Number(fields.used),
    period_start: number(fields.period_start),
    period_end: number(fields.period_end),
    packs: Object.entries(packs)
      .filter(([name]) => !name.startsWith('used:'))
      .map(([id, json]) => ({
        ...(JSON.parse(json) as Omit<Pack, 'id' | 'used'>),
        id,
        used: Number(packs[`used:${id}`]),
      })),
    credits_given: Number(fields.credits_given),
    credits_consumed: Number(fields.credits_consumed),
    held: Number(fields.held),
  };
}

/** An account with its plan and balances at one moment. */
export interface AccountSnapshot {
  readonly account: Account;
  readonly plan: Plan | null;
  readonly balances: AccountBalances;
}

/** Reads an account with its balances, and rolls its billing period first when that has ended. Throws `not_found`. */
export async function readSnapshot(store: RecordStore, accountId: string): Promise<AccountSnapshot> {
  let seen = await readRawBalances(store, accountId);
  const ends = number(seen.fields.period_end);
  if (ends !== null && ends <= store.clock.now() && (await rollPeriod(store, accountId)))
    seen = await readRawBalances(store, accountId);
  const json = seen.fields.plan ? await store.connection.read(['HGET', keys.plans, seen.fields.plan]) : null;
  const plan = json === null ? null : (JSON.parse(String(json)) as Plan);
  const booked = parseBalances(seen.fields, seen.packs);
  return { account: accountOf(seen.fields), plan, balances: { ...booked, quota: plan?.quota ?? 0 } };
}
