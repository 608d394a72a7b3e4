import { refuse } from '../../base/errors.ts';
import { keys } from '../keys.ts';
import { books, booksKeys } from '../lua/books.ts';
import { type RecordStore, run, script } from '../script.ts';
import { bookKeys, rolling } from './roll-period.ts';

/**
 * Grants credits to an account, once per id where one is given. Answers {'granted', given, consumed}, also to a repetition,
 * {'conflict'} when the id was given another amount, {'not_found'} or {'roll'}.
 */
const grantScript = script(
  'grant',
  'needs memory',
  [...booksKeys, 'grants'] as const,
  ['accountId', 'amount', 'reason', 'id'] as const,
  /* lua */ `${books}
local refused = open_books()
if refused then return refused end
local granted = id ~= '' and redis.call('HGET', grants, id)
if granted and granted ~= amount then return { 'conflict' } end
if not granted then
  if id ~= '' then redis.call('HSET', grants, id, amount) end
  sync()
  grant_credits(tonumber(amount), reason)
end
return { 'granted', b.credits_given, b.credits_consumed }
`,
);

/**
 * Grants credits to an account, with the reason for its ledger, and answers its credits. With an id it may be repeated:
 * that grants nothing more.
 */
export async function grantCredits(
  store: RecordStore,
  account: string,
  amount: number,
  { reason = '', id = '' }: { readonly reason?: string | undefined; readonly id?: string | undefined } = {},
): Promise<{ given: number; consumed: number }> {
  const reply = await rolling(store, account, () =>
    run(
      store,
      grantScript,
      { ...bookKeys(account), grants: keys.grants(account) },
      { accountId: account, amount, reason, id },
    ),
  );
  if (reply[0] === 'conflict') throw refuse('already_exists', `Another number of credits was added with the id ${id}`);
  if (reply[0] !== 'granted') throw refuse('not_found', 'There is no such account');
  return { given: Number(reply[1]), consumed: Number(reply[2]) };
}
