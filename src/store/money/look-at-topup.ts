import { keys } from '../keys.ts';
import { isEarly } from '../lua/age.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { readDueNow } from '../redis/read-due.ts';
import { type RecordStore, run, script } from '../script.ts';
import { withRolledPeriod } from './roll-period.ts';

/** A month, until which a reached cap lasts: after a longer wait the clock of Redis must have gone back. */
const maxWaitMs = 31 * 86_400_000;

/**
 * Looks at the balance of an account whose top-up could not buy before. One with nothing left has no charge that would ask for the
 * purchase (D49), so all is decided anew as after a charge; while the 72 hours still run, the next look is noted.
 * Answers {'looked'}, {'early'}, {'dropped'} when the record has no such account, or {'roll'}.
 */
const lookAtTopupScript = script('look-at-topup', 'always', balanceKeyNames, ['accountId'])`${balances}
local due = redis.call('ZSCORE', topupLooks, accountId)
if not due or ${isEarly('due', maxWaitMs)} then return { 'early' } end
local refused = read_balances()
if refused and refused[1] == 'roll' then return refused end
undos[#undos + 1] = function() redis.pcall('ZADD', topupLooks, due, accountId) end
if refused then
  redis.call('ZREM', topupLooks, accountId)
  return { 'dropped' }
end
others[1] = function() redis.call('ZREM', topupLooks, accountId) end
book_plan_quota()
local last = redis.call('HGET', topup, 'last_purchase_at')
if (tonumber(last or '') or 0) > now then
  -- The clock was ahead then: the 72 hours would not end for as long.
  others[2] = function()
    undos[#undos + 1] = function() redis.pcall('HSET', topup, 'last_purchase_at', last) end
    redis.call('HSET', topup, 'last_purchase_at', string.format('%d', now))
  end
end
if is_empty() then request_topup() end
write_balances()
return { 'looked' }
`;

/** Returns up to 100 accounts whose balance is to be looked at now. */
export function dueTopupLooks(store: RecordStore): Promise<string[]> {
  return readDueNow(store, keys.topupLooks, maxWaitMs);
}

/** Asks for a purchase when nothing is left and one may be bought. */
export async function lookAtTopup(store: RecordStore, accountId: string): Promise<void> {
  await withRolledPeriod(store, accountId, () => run(store, lookAtTopupScript, { accountId }));
}
