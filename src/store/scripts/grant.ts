import { books, booksKeys } from '../lua/books.ts';
import { script } from '../script.ts';

/**
 * Grants credits to an account, once per id where one is given. Answers {'granted', given, consumed}, also to a repetition,
 * {'conflict'} when the id was given another amount, {'not_found'} or {'roll'}.
 */
export const grant = script(
  'grant',
  'needs room',
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
