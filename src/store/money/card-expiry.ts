import { keys } from '../keys.ts';
import { outboxKeyNames, outboxLua } from '../lua/outbox.ts';
import { readDue } from '../redis/read-due.ts';
import { type RecordStore, run, script } from '../script.ts';

const dayMs = 86_400_000;
const lookAgainMs = 3_600_000;

/**
 * watch_card(method): has the end of a stored card looked up, because its account has another one now; '' for none. It comes before the card is
 * written, so that it may be repeated.
 */
export const watchCard = /* lua */ `
local function watch_card(method)
  if redis.call('HGET', topup, 'payment_method') == method then return end
  redis.call('HDEL', topup, 'card_expires')
  if method == '' then redis.call('ZREM', expiringCards, accountId) else redis.call('ZADD', expiringCards, now, accountId) end
end
`;

/**
 * Notes when the stored card of an account expires, and leaves a mail 30 days and 7 days before. It is looked up
 * at each of these times alone and at its end, because banks renew cards. 'unknown': nobody could be asked. A card that was changed meanwhile
 * is due again already. Answers {'told'}, {'kept'}, {'dropped'}, {'unknown'}, {'changed'} or {'early'}.
 */
const noteCardScript = script(
  'note-card',
  'always',
  ['account', 'topup', 'expiringCards', ...outboxKeyNames],
  ['accountId', 'method', 'label', 'ends'],
)`${outboxLua}
local due = redis.call('ZSCORE', expiringCards, accountId)
if not due or now < tonumber(due) then return { 'early' } end
local known = redis.call('HMGET', topup, 'payment_method', 'card_expires')
if (known[1] or '') ~= method then return { 'changed' } end
undos[#undos + 1] = function()
  redis.pcall('ZADD', expiringCards, due, accountId)
  put_back(topup, { 'card_expires' }, { known[2] })
end
local function look_again(at) redis.call('ZADD', expiringCards, string.format('%d', at), accountId) end
if ends == 'unknown' then
  look_again(now + ${lookAgainMs})
  return { 'unknown' }
end
local last = tonumber(ends)
if not last or last <= now or (redis.call('HGET', account, 'removed_at') or '') ~= '' then
  redis.call('ZREM', expiringCards, accountId)
  return { 'dropped' }
end
local left = last - now
local ahead = left <= ${7 * dayMs} and 7 or left <= ${30 * dayMs} and 30 or nil
redis.call('HSET', topup, 'card_expires', ends)
look_again(ahead == 7 and last or last - (ahead and 7 or 30) * ${dayMs})
if not ahead then return { 'kept' } end
put_mail('card-' .. accountId, { kind = 'card', account = accountId, card = label, expires = last })
return { 'told' }
`;

/** A stored card: its words for people, and the time from which it is not taken any more. */
export interface StoredCard {
  readonly label: string;
  readonly expires: number;
}

/** Returns up to 100 accounts whose stored card is to be looked up now. */
export function dueCards(store: RecordStore): Promise<string[]> {
  return readDue(store, keys.expiringCards, store.clock.now());
}

/** Notes what was found of a payment method: `null` when it is no card or is gone, 'unknown' when nobody could be asked. */
export async function noteCard(
  store: RecordStore,
  accountId: string,
  method: string,
  found: StoredCard | null | 'unknown',
): Promise<void> {
  const { label, expires: ends } = found === null || found === 'unknown' ? { label: '', expires: found ?? '' } : found;
  await run(store, noteCardScript, { accountId, method, label, ends });
}
