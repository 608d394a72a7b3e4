import { books, booksKeys } from '../lua/books.ts';
import { fair, fairKeys } from '../lua/fair.ts';
import { script } from '../script.ts';

/**
 * Changes fields of an account and, when one is named, its plan: another plan keeps the period and what was used, the
 * first one begins a period, none ends it (D50). `plan` is '' to leave it, '-' for none.
 * Answers {'set'}, {'not_found'}, {'no_plan'} or {'roll'}.
 */
export const setAccount = script(
  'set-account',
  'needs room',
  [...booksKeys, ...fairKeys.filter((key) => key !== 'account'), 'planUsers', 'periods'] as const,
  ['accountId', 'plan', 'fields', 'start', 'finish'] as const,
  /* lua */ `${books}${fair}
local refused = open_books()
if refused then return refused end
local changes = cjson.decode(fields)
local wanted = plan == '-' and '' or plan
if wanted ~= '' and redis.call('HEXISTS', plans, wanted) == 0 then return { 'no_plan' } end

local function change_plan()
  if b.plan == wanted then return end
  if b.plan ~= '' then redis.call('HINCRBY', planUsers, b.plan, -1) end
  if wanted ~= '' then redis.call('HINCRBY', planUsers, wanted, 1) end
  local first, last = b.plan == '', wanted == ''
  keep('plan', wanted)
  b.terms = wanted ~= '' and cjson.decode(redis.call('HGET', plans, wanted)) or nil
  sync()
  if first then
    keep('period_anchor', start)
    keep('period_start', start)
    keep('period_end', finish)
    redis.call('ZADD', periods, finish, accountId)
  end
  if last then
    keep('used', 0)
    keep('period_anchor', '')
    keep('period_start', '')
    keep('period_end', '')
    redis.call('ZREM', periods, accountId)
  end
end

if plan ~= '' then change_plan() end
for name, value in pairs(changes) do keep(name, value) end
stand(accountId, tonumber(b.running), b.concurrency, b.tag)
return { 'set' }
`,
);
