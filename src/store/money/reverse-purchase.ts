import type { Purchase } from '../../model/purchase.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { type RecordStore, run, script } from '../script.ts';
import { paymentEventOnce } from './payment-events.ts';
import { withRolledPeriod } from './roll-period.ts';

/**
 * Takes back the unused rest of a pack whose payment was refunded or disputed, once; a dispute also disables the top-up, and
 * counts after a refund, too, because operators must answer it by a deadline. A purchase that is still under way ends, and a
 * payment that is reported later adds nothing: events may come in any order. An event that was carried out before is stale.
 * Leaves a mail to the operators. Answers {'reversed', credits that lapsed}, {'stale'}, {'not_found'} or {'roll'}.
 */
const reversePurchaseScript = script(
  'reverse-purchase',
  'always',
  [...balanceKeyNames, 'bought', 'payments', 'paymentEvents'],
  ['accountId', 'id', 'state', 'record', 'eventId'],
)`${balances}${paymentEventOnce}
if is_repeated_event() then return { 'stale' } end
local seen = redis.call('HGET', bought, id)
local r = read_json(seen or '')
-- What a damaged one lacks, the provider tells.
for name, value in pairs(cjson.decode(record)) do
  if r[name] == nil then r[name] = value end
end
if r.state == 'disputed' or r.state == 'refunded' and state == 'refunded' then return with_event({ 'stale' }) end
local refused = read_balances()
if refused then return refused end
local pack = redis.call('HMGET', packs, id, 'used:' .. id)

-- What admission counts on beside the rests of the other packs.
local function left_of_pack()
  local left, fields, seen = b.packs_left, {}, redis.call('HGETALL', packs)
  for n = 1, #seen, 2 do fields[seen[n]] = seen[n + 1] end
  for other, json in pairs(fields) do
    local total, used = read_json(json).total, tonumber(fields['used:' .. other] or '')
    if other ~= id and type(total) == 'number' and used then left = left - math.max(0, total - used) end
  end
  return left
end

local fields = { 'purchase', 'enabled', 'last_purchase_at' }
local setting = redis.call('HMGET', topup, unpack(fields))
local due = redis.call('ZSCORE', purchases, accountId)
local queued_at = redis.call('ZSCORE', packQueue, id)
local paid_for = redis.call('HGET', payments, r.payment)
local lapsed = 0
r.state, r.reversed_at, r.ended_at = state, now, r.ended_at or now
if pack[1] then
  local p = read_json(pack[1])
  -- A pack that is damaged had as much as was paid for.
  if type(p.total) ~= 'number' then p = { title = r.pack_title, purchased_at = r.ended_at, total = r.pack_total } end
  -- Of one whose count is damaged no more is left than admission counts on.
  lapsed = math.max(0, math.min(p.total - (tonumber(pack[2] or '') or 0), left_of_pack()))
  if lapsed > 0 then
    p.total = p.total - lapsed
    set_field('packs_left', b.packs_left - lapsed)
    lapse('packs', lapsed, id)
    others[#others + 1] = function()
      undos[#undos + 1] = function()
        put_back(packs, { id, 'used:' .. id }, pack)
        if queued_at then redis.pcall('ZADD', packQueue, queued_at, id) end
      end
      redis.call('HSET', packs, id, cjson.encode(p), 'used:' .. id, string.format('%d', p.total))
      redis.call('ZREM', packQueue, id)
    end
  end
end
if state == 'disputed' then set_field('topup', '') end
write_balances()
undos[#undos + 1] = function()
  put_back(topup, fields, setting)
  put_back(bought, { id }, { seen })
  put_back(payments, { r.payment }, { paid_for })
  if due then redis.pcall('ZADD', purchases, due, accountId) end
end
if setting[1] == id then
  -- It was charged, so the 72 hours begin.
  redis.call('HSET', topup, 'purchase', '', 'last_purchase_at', bought_at(id))
  redis.call('ZREM', purchases, accountId)
end
if state == 'disputed' and setting[2] then redis.call('HSET', topup, 'enabled', '0') end
-- A dispute of a payment that was never booked, because its refund came first, finds its purchase by this.
redis.call('HSET', payments, r.payment, accountId .. '/' .. id)
redis.call('HSET', bought, id, cjson.encode(r))
put_mail('reversed-' .. id, { kind = 'reversed', account = accountId, purchase = id, lapsed = lapsed })
return with_event({ 'reversed', lapsed })
`;

/**
 * Returns how many credits lapsed: 0 for a dispute after a refund. `null` for a repetition and for a refund after a dispute;
 * 'not_found' when the record does not have the account.
 */
export async function reversePurchase(
  store: RecordStore,
  purchase: Purchase,
  state: 'refunded' | 'disputed',
  payment: string,
  eventId = '',
): Promise<number | 'not_found' | null> {
  const { account, id } = purchase;
  const record = JSON.stringify({ ...purchase, payment });
  const [word, lapsed] = await withRolledPeriod(store, account, () =>
    run(store, reversePurchaseScript, { accountId: account, id, state, record, eventId }),
  );
  if (word === 'not_found') return word;
  return word === 'reversed' ? Number(lapsed) : null;
}
