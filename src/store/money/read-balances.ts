import { refuse } from '../../base/errors.ts';
import { isJsonObject, parseJson } from '../../base/parse-json.ts';
import type { AccountBalances, Pack } from '../../model/money.ts';
import { countOpenJobs } from '../lua/job-index.ts';
import { number, pairs, type RecordStore, run, script, text } from '../script.ts';

/**
 * Reads the money of one account at one moment. Answers {'read', fields of the account, fields of the packs, number of its
 * open jobs and synchronous calls, JSON of the newest archived part of its ledger or '', packs that charges draw from, newest entry that
 * Redis has of its ledger or ''}.
 */
const readBalancesScript = script(
  'read-balances',
  'light',
  ['account', 'packs', 'packQueue', 'jobs', 'calls', 'ledger', 'ledgerDays'],
  ['accountId'],
)`
local in_hand = ${countOpenJobs}
-- The calls of all accounts are looked through only for an account that may have one.
local held = tonumber(redis.call('HGET', account, 'held'))
if held ~= 0 or in_hand ~= 0 then
  for _, member in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
    if string.sub(member, 1, #accountId + 1) == accountId .. '/' then in_hand = in_hand + 1 end
  end
end
local newest = redis.call('XREVRANGE', ledger, '+', '-', 'COUNT', 1)[1]
return { 'read', redis.call('HGETALL', account), redis.call('HGETALL', packs), in_hand,
  redis.call('LINDEX', ledgerDays, -1) or '', redis.call('ZRANGE', packQueue, 0, -1), newest and newest[1] or '' }
`;

export type RawBalances = Awaited<ReturnType<typeof readRawBalances>>;

export async function readRawBalances(store: RecordStore, accountId: string) {
  const reply = await run(store, readBalancesScript, { accountId });
  const fields = pairs(reply[1]);
  if (fields.id === undefined) throw refuse('not_found', 'There is no such account');
  return {
    fields,
    packs: pairs(reply[2]),
    /** Number of open jobs and of synchronous calls under way: each has one hold. */
    open: Number(reply[3]),
    /** JSON of the newest archived part of the ledger, '' without one. */
    newestPart: text(reply[4]),
    /** Ids of the packs that charges draw from, in their order. */
    packQueue: reply[5] as string[],
    /** Id of the newest entry that Redis has of the ledger, '' without one. */
    newestEntry: text(reply[6]),
  };
}

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
      .map(([id, json]) => packOf(id, json, Number(packs[`used:${id}`]))),
    credits_given: Number(fields.credits_given),
    credits_consumed: Number(fields.credits_consumed),
    held: Number(fields.held),
  };
}

/** Gives the first damaged pack what admission counts on beside the whole ones: it is charged for as much. */
export function withDamagedRest(packs: readonly Pack[], packsLeft: number): Pack[] {
  const rest = packsLeft - packs.reduce((sum, { total, used }) => sum + total - used, 0);
  const damaged = packs.find(({ title }) => title === damagedTitle);
  return packs.map((pack) => (pack === damaged && rest > 0 ? { ...pack, total: pack.total + rest } : pack));
}

const damagedTitle = 'Damaged';

/** Reads a pack. One that is damaged seems to be used up, and `ledger verify` tells what it had. */
function packOf(id: string, json: string, used: number): Pack {
  const read = parseJson(json);
  if (!isJsonObject(read) || typeof read.total !== 'number' || Number.isNaN(used))
    return { id, used: used || 0, title: damagedTitle, purchased_at: 0, total: used || 0 };
  return { ...(read as unknown as Omit<Pack, 'id' | 'used'>), id, used };
}
