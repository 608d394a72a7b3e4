import { books, booksKeys } from '../lua/books.ts';
import { script } from '../script.ts';

/** Grants credits to an account. Answers {'granted', given, consumed}, {'not_found'} or {'roll'}. */
export const grant = script(
  'grant',
  'needs room',
  booksKeys,
  ['accountId', 'amount', 'reason'] as const,
  /* lua */ `${books}
local refused = open_books()
if refused then return refused end
sync()
grant_credits(tonumber(amount), reason)
return { 'granted', b.credits_given, b.credits_consumed }
`,
);
