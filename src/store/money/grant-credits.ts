import { refuse } from '../../base/errors.ts';
import { recordLimits } from '../../model/record-limits.ts';
import { keys } from '../keys.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { notedScript, type RecordStore, runNoted } from '../script.ts';
import { withRolledPeriod } from './roll-period.ts';

/**
 * Grants credits to an account, once per id where one is given. Answers {'granted', given, consumed}, also to a repetition,
 * {'conflict'} when the id was given another amount, {'too_many'} ids, {'not_found'} or {'roll'}.
 */
const grantCreditsScript = notedScript(
  'grant-credits',
  'needs memory',
  [...balanceKeyNames, 'grants'],
  ['amount', 'reason', 'id'],
)`${balances}
local refused = read_balances()
if refused then return refused end
local granted = id ~= '' and redis.call('HGET', grants, id)
if granted and granted ~= amount then return { 'conflict' } end
if not granted then
  if id ~= '' and redis.call('HLEN', grants) >= ${recordLimits.grantIdsOfAccount} then return { 'too_many' } end
  if note_change() then return { 'audit_full' } end
  book_plan_quota()
  grant_credits(tonumber(amount), reason)
  write_balances()
  if id ~= '' then redis.call('HSET', grants, id, amount) end
end
return { 'granted', b.credits_given, b.credits_consumed }
`;

/**
 * Returns all that the account was given and has consumed. Throws `already_exists` when the id had another amount, `too_many` for too many
 * ids, or `not_found`.
 */
export async function grantCredits(
  store: RecordStore,
  accountId: string,
  amount: number,
  { reason = '', id = '' }: { readonly reason?: string | undefined; readonly id?: string | undefined } = {},
): Promise<{ given: number; consumed: number }> {
  const values = { accountId, amount, reason, id };
  const note = { accountId, action: 'credits.add', target: '', change: { amount, reason, id } } as const;
  const reply = await withRolledPeriod(store, accountId, () => runNoted(store, grantCreditsScript, values, note));
  if (reply[0] === 'conflict') throw refuse('already_exists', `Another number of credits was added with the id ${id}`);
  if (reply[0] === 'too_many') {
    const most = `An account has at most ${recordLimits.grantIdsOfAccount} grants with an id`;
    throw refuse('too_many', `${most}: leave the id out`);
  }
  if (reply[0] !== 'granted') throw refuse('not_found', 'There is no such account');
  return { given: Number(reply[1]), consumed: Number(reply[2]) };
}

export async function isGranted(store: RecordStore, accountId: string, id: string): Promise<boolean> {
  return (await store.connection.read(['HGET', keys.grants(accountId), id])) !== null;
}
