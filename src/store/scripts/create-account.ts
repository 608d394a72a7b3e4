import { books, booksKeys } from '../lua/books.ts';
import { script } from '../script.ts';

/**
 * Creates an account, with its plan's first quota when it has one. Answers {'created'}, {'already_exists'} when the slug
 * is taken, or {'no_plan'}.
 */
export const createAccount = script(
  'create-account',
  'needs room',
  [...booksKeys, 'slugs', 'planUsers', 'periods'] as const,
  ['accountId', 'slug', 'plan', 'fields', 'start', 'finish'] as const,
  /* lua */ `${books}
if redis.call('HEXISTS', slugs, slug) == 1 or redis.call('EXISTS', account) == 1 then return { 'already_exists' } end
if plan ~= '' and redis.call('HEXISTS', plans, plan) == 0 then return { 'no_plan' } end
local flat = { 'id', accountId, 'slug', slug, 'plan', plan, 'created_at', now, 'quota', 0, 'used', 0, 'packs_left', 0,
  'credits_given', 0, 'credits_consumed', 0, 'held', 0, 'running', 0, 'tag', 0, 'last_entry', '', 'removed_at', '',
  'period_start', '', 'period_end', '', 'period_anchor', '' }
for name, value in pairs(cjson.decode(fields)) do flat[#flat + 1], flat[#flat + 2] = name, value end
redis.call('HSET', account, unpack(flat))
redis.call('HSET', slugs, slug, accountId)
if plan ~= '' then
  redis.call('HSET', account, 'period_anchor', start, 'period_start', start)
  redis.call('HINCRBY', planUsers, plan, 1)
  open_books()
  keep('period_end', finish)
  redis.call('ZADD', periods, finish, accountId)
  sync()
end
return { 'created' }
`,
);
