import { books, booksKeys } from '../lua/books.ts';
import { script } from '../script.ts';

/**
 * Rolls an account into its next billing period (D50): what is left of the quota lapses, used returns to 0, the plan
 * grants its quota anew. Only when the present one has ended, so a repetition changes nothing.
 * Answers {'rolled'}, {'already_rolled'} or {'not_found'}.
 */
export const roll = script(
  'roll',
  'always',
  [...booksKeys, 'periods'] as const,
  ['accountId', 'start', 'finish'] as const,
  /* lua */ `${books}
local state = open_books()
if not state then return { 'already_rolled' } end
if state[1] ~= 'roll' then return state end
set_quota(0)
keep('used', 0)
keep('period_start', start)
keep('period_end', finish)
redis.call('ZADD', periods, finish, accountId)
sync()
return { 'rolled' }
`,
);
