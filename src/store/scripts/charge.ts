import { books, booksKeys } from '../lua/books.ts';
import { count } from '../lua/count.ts';
import { script } from '../script.ts';

/**
 * Ends a synchronous call that answers 200: turns its hold into a charge, with ledger, request-log line and statistics.
 * A hold past its deadline is not charged. Answers {'charged', balance}, {'gone'} or {'roll'}.
 */
export const charge = script(
  'charge',
  'always',
  [...booksKeys, 'calls', 'paidLines', 'stats', 'repeats'] as const,
  ['accountId', 'id', 'endpoint', 'took', 'ip', 'answer'] as const,
  /* lua */ `${books}${count}
local deadline = redis.call('ZSCORE', calls, accountId .. '/' .. id)
if not deadline or now >= tonumber(deadline) then return { 'gone' } end
local refused = open_books()
if refused then return refused end
redis.call('ZREM', calls, accountId .. '/' .. id)
keep('held', b.held - 1)
local balance = draw(id)
redis.call('XADD', paidLines, '*', 'at', now, 'endpoint', endpoint, 'status', 200, 'duration_ms', took, 'ip', ip, 'credits', 1)
count(200, tonumber(took))
if redis.call('HGET', repeats, 'id') == id then
  if #answer > 0 and #answer <= 65536 then
    redis.call('HSET', repeats, 'answer', answer, 'until', now + 86400000)
  else
    redis.call('DEL', repeats)
  end
end
return { 'charged', balance }
`,
);
