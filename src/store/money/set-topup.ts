import { keys } from '../keys.ts';
import { notedScript, pairs, type RecordStore, runNoted } from '../script.ts';
import { watchCard } from './card-expiry.ts';
import { paymentEventOnce } from './payment-events.ts';

/**
 * Changes the top-up setting. An event of the provider (`eventAt`) is ignored as stale unless it is newer than the last one that stored a
 * card: events repeat and come in any order, and of two within one second the first counts, so that no repetition changes the card back.
 * A card that paid for a pack (`cardIs`) counts only where none is stored, and does not make stale the event of one that the owner
 * stored on purpose before. An event that was carried out before is stale. Answers {'set'}, {'stale'}, {'audit_full'} or {'not_found'}.
 */
const setTopupScript = notedScript(
  'set-topup',
  'always',
  ['account', 'topup', 'topupLooks', 'expiringCards', 'paymentEvents'],
  ['accountId', 'fields', 'eventAt', 'cardIs', 'eventId'],
)`${watchCard}${paymentEventOnce}
if redis.call('EXISTS', account) == 0 then return { 'not_found' } end
if is_repeated_event() then return { 'stale' } end
if eventAt ~= '' then
  local stored_at, paid_at, present = unpack(redis.call('HMGET', topup, 'card_event_at', 'card_paid_at', 'payment_method'))
  local newest = tonumber(stored_at or 0)
  if cardIs == 'paying' then
    if (present or '') ~= '' then return with_event({ 'stale' }) end
    newest = math.max(newest, tonumber(paid_at or 0))
  end
  if newest >= tonumber(eventAt) then return with_event({ 'stale' }) end
end
local was_enabled, look = redis.call('HGET', topup, 'enabled') == '1', redis.call('ZSCORE', topupLooks, accountId)
if note_change() then return { 'audit_full' } end
local chosen = cjson.decode(fields)
if chosen.payment_method then watch_card(chosen.payment_method) end
for name, value in pairs(chosen) do redis.call('HSET', topup, name, value) end
local is_enabled = redis.call('HGET', topup, 'enabled') == '1'
-- A top-up that waits for the next month may buy now, with another cap. Enabling buys nothing.
if look and was_enabled and is_enabled then
  undos[#undos + 1] = function() redis.pcall('ZADD', topupLooks, look, accountId) end
  redis.call('ZADD', topupLooks, string.format('%d', now), accountId)
end
redis.call('HSET', account, 'topup', is_enabled and '1' or '')
if eventAt ~= '' then
  local mark = cardIs == 'paying' and 'card_paid_at' or 'card_event_at'
  local newest = redis.call('HGET', topup, mark)
  undos[#undos + 1] = function()
    if newest then redis.pcall('HSET', topup, mark, newest) else redis.pcall('HDEL', topup, mark) end
  end
  redis.call('HSET', topup, mark, eventAt)
end
return with_event({ 'set' })
`;

/** Card that the fields name, as the provider told of it. */
interface CardEvent {
  /** Id of the event; '' for an answer. */
  readonly id: string;
  readonly at: number;
  /** `stored`: by the owner, on purpose; `paying`: kept because it paid for a pack. */
  readonly is: 'stored' | 'paying';
}

/** Every value is text, '' for none. */
export async function setTopup(
  store: RecordStore,
  accountId: string,
  fields: Readonly<Record<string, string>>,
  event?: CardEvent,
): Promise<void> {
  const card = { eventAt: event?.at, cardIs: event?.is, eventId: event?.id };
  const values = { accountId, fields: JSON.stringify(fields), ...card };
  await runNoted(store, setTopupScript, values, { accountId, action: 'topup.change', target: '', change: fields });
}

/** Returns the fields of an account's top-up setting and of its purchase. */
export async function readTopup(store: RecordStore, accountId: string): Promise<Record<string, string>> {
  return pairs(await store.connection.read(['HGETALL', keys.topup(accountId)]));
}
