import type { Purchase, PurchaseEnd } from '../../model/purchase.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { type RecordStore, run, script } from '../script.ts';
import { paymentEventOnce } from './payment-events.ts';
import { withRolledPeriod } from './roll-period.ts';

/**
 * Ends a purchase, once: paid adds the pack, gives the next number to its invoice and starts the 72 hours of a top-up;
 * declined disables the top-up (D49). Each leaves a mail. Money that arrives after a decline is still worth its pack; a
 * refund is final: a payment that is told after it only begins the 72 hours. Money for an account that was removed, or that a
 * restored record does not have, adds nothing and leaves a mail to the operators, once a payment. An event that was carried out
 * before is stale. Answers {'paid'}, {'declined'}, {'unbooked'}, {'stale'},
 * {'not_found'} or {'roll'}.
 */
const endPurchaseScript = script(
  'end-purchase',
  'always',
  [...balanceKeyNames, 'bought', 'invoices', 'payments', 'paymentEvents'],
  ['accountId', 'id', 'verdict', 'record', 'json', 'eventId'],
)`${balances}${paymentEventOnce}
if is_repeated_event() then return { 'stale' } end
local r = cjson.decode(record)
-- The card that paid for a pack is stored after this, by a script that then notes the event.
local function done(word)
  return verdict == 'paid' and r.kind == 'offer' and { word } or with_event({ word })
end

local seen = redis.call('HGET', bought, id)
local before = read_json(seen or '')
-- Of a damaged one its payment tells: it is noted once it is booked or taken back.
local is_settled = redis.call('HEXISTS', payments, r.payment) == 1
local state = before.state or seen and (is_settled and 'paid' or 'declined')
local fields = { 'purchase', 'last_purchase_at', 'enabled' }
local setting = redis.call('HMGET', topup, unpack(fields))
local is_current = setting[1] == id
if state and not (state == 'declined' and verdict == 'paid') then
  -- Its refund came first, and may have come while the clock was behind.
  local is_unbooked = verdict == 'paid' and r.kind == 'topup' and before.state and not before.invoice
  if is_unbooked and setting[3] then redis.call('HSET', topup, 'last_purchase_at', bought_at(id)) end
  return done('stale')
end
if verdict == 'declined' and not is_current then return done('stale') end

local function refuse_money(slug)
  if is_settled then return with_event({ 'stale' }) end
  undos[#undos + 1] = function() redis.pcall('HDEL', payments, r.payment) end
  redis.call('HSET', payments, r.payment, accountId .. '/' .. id)
  put_mail('unbooked-' .. r.payment, { kind = 'unbooked', account = '', owner = accountId, slug = slug, payment = r.payment,
    title = r.pack_title, price_cents = r.price_cents, currency = r.currency })
  return with_event({ 'unbooked' })
end
local slug, removed_at = unpack(redis.call('HMGET', account, 'slug', 'removed_at'))
if verdict == 'paid' and (not slug or (removed_at or '') ~= '') then return refuse_money(slug or '') end
local refused = read_balances()
if refused then return refused end
local due, begins_at = redis.call('ZSCORE', purchases, accountId), bought_at(id)
r.state, r.ended_at = verdict, now

local function keep_setting()
  undos[#undos + 1] = function()
    put_back(topup, fields, setting)
    if due then redis.pcall('ZADD', purchases, due, accountId) end
  end
  if not is_current then return end
  redis.call('HSET', topup, 'purchase', '')
  redis.call('ZREM', purchases, accountId)
end

local function note_paid()
  undos[#undos + 1] = function() redis.pcall('HDEL', payments, r.payment) end
  redis.call('HSET', payments, r.payment, accountId .. '/' .. id)
  if r.kind == 'topup' then redis.call('HSET', topup, 'last_purchase_at', begins_at) end
end

local function keep_record()
  undos[#undos + 1] = function() put_back(bought, { id }, { seen }) end
  redis.call('HSET', bought, id, cjson.encode(r))
end

if verdict == 'paid' then
  book_plan_quota()
  grant_pack(id, json, r.pack_total, string.format('%d', now))
  r.buyer = redis.call('HGET', account, 'name') or ''
else
  set_field('topup', '')
end
write_balances()
keep_setting()
if verdict == 'paid' then
  note_paid()
  local number = redis.call('RPUSH', invoices, accountId .. '/' .. id)
  undos[#undos + 1] = function() redis.pcall('RPOP', invoices) end
  r.invoice = number
  keep_record()
  put_mail('invoice-' .. id, { kind = 'invoice', account = accountId, purchase = id })
else
  redis.call('HSET', topup, 'enabled', '0')
  keep_record()
  put_mail('decline-' .. id, { kind = 'decline', account = accountId, purchase = id })
end
return done(verdict)
`;

/** `eventId`: of the provider's event that tells the end; absent for its answer. */
export async function endPurchase(
  store: RecordStore,
  purchase: Purchase,
  end: PurchaseEnd,
  eventId = '',
): Promise<'paid' | 'declined' | 'unbooked' | 'stale'> {
  const now = store.clock.now();
  const { id, account, kind, pack_title, pack_total, price_cents, currency, customer, payment_method } = purchase;
  const { verdict, ...ending } = end;
  const terms = { id, account, kind, pack_title, pack_total, price_cents, currency, customer, payment_method };
  const [word] = await withRolledPeriod(store, account, () =>
    run(store, endPurchaseScript, {
      accountId: account,
      id,
      verdict,
      record: JSON.stringify({ ...terms, ...ending }),
      json: JSON.stringify({ title: pack_title, purchased_at: now, total: pack_total }),
      eventId,
    }),
  );
  return word === 'paid' || word === 'declined' || word === 'unbooked' ? word : 'stale';
}
