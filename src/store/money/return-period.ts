import { periodAt } from '../../model/billing-period.ts';
import { keys } from '../keys.ts';
import { type RecordStore, run, script, text } from '../script.ts';

const day = 86_400_000;
/** No billing period is longer: one that ends later has not begun. */
export const maxPeriodMs = 31 * day;

/**
 * Brings an account back whose billing period begins in the future, because a clock that was ahead rolled it: it would get no quota until then.
 * Quota and use stay as they are. It must be seen so for a day, since a machine that starts with an old time sees it of every account,
 * and each would get another quota when the time is right again.
 * Answers {'returned'}, {'noted'}, {'early'}, or {'present'} when the period has begun.
 */
const returnPeriodScript = script('return-period', 'always', ['account', 'periods'], ['accountId', 'start', 'finish'])`
local began, ends, seen = unpack(redis.call('HMGET', account, 'period_start', 'period_end', 'period_ahead'))
if (ends or '') == '' or tonumber(began) <= now or now < tonumber(start) or now >= tonumber(finish) then return { 'present' } end
local since, seen_end = string.match(seen or '', '^(%d+):(%d+)$')
if seen_end ~= ends or tonumber(since) > now then
  redis.call('HSET', account, 'period_ahead', string.format('%d:%s', now, ends))
  return { 'noted' }
end
if now - since < ${day} then return { 'early' } end
undos[1] = function()
  redis.pcall('HSET', account, 'period_start', began, 'period_end', ends)
  redis.pcall('ZADD', periods, ends, accountId)
end
redis.call('HSET', account, 'period_start', start, 'period_end', finish)
redis.call('ZADD', periods, finish, accountId)
return { 'returned' }
`;

/** Returns true when an account was brought back into the present billing period. */
export async function returnPeriod(store: RecordStore, accountId: string): Promise<boolean> {
  const anchor = text(await store.connection.read(['HGET', keys.account(accountId), 'period_anchor']));
  if (anchor === '') return false;
  const { start, end } = periodAt(Number(anchor), store.clock.now());
  return (await run(store, returnPeriodScript, { accountId, start, finish: end }))[0] === 'returned';
}
