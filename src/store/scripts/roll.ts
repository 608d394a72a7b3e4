import { books, booksKeys } from '../lua/books.ts';
import { script } from '../script.ts';

/**
 * Rolls an account into its next billing period (D50): what is left of the quota lapses, used returns to 0, the plan
 * grants its quota anew. Only from the period that was seen to have ended, so a repetition changes nothing.
 * Answers {'rolled'}, {'already_rolled'} or {'not_found'}.
 */
export const roll = script(
  'roll',
  'always',
  [...booksKeys, 'periods'] as const,
  ['accountId', 'ended', 'start', 'finish'] as const,
  /* lua */ `${books}
if (open_books() or {})[1] ~= 'roll' or b.period_end ~= ended or now < tonumber(ended) then
  return { b and b.slug and 'already_rolled' or 'not_found' }
end
set_quota(0)
keep('used', 0)
keep('period_start', start)
keep('period_end', finish)
redis.call('ZADD', periods, finish, accountId)
sync()
return { 'rolled' }
`,
);
