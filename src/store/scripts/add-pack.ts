import { books, booksKeys } from '../lua/books.ts';
import { script } from '../script.ts';

/** Adds a pack to an account, once per pack id. Answers {'added'}, {'already_added'}, {'not_found'} or {'roll'}. */
export const addPack = script(
  'add-pack',
  'needs room',
  booksKeys,
  ['accountId', 'id', 'json', 'total', 'purchasedAt'] as const,
  /* lua */ `${books}
local refused = open_books()
if refused then return refused end
if redis.call('HEXISTS', packs, id) == 1 then return { 'already_added' } end
sync()
grant_pack(id, json, tonumber(total), purchasedAt)
return { 'added' }
`,
);
