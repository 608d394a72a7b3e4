import { monthOf } from '../../model/billing-period.ts';
import type { Purchase } from '../../model/purchase.ts';
import { topupCooldownMs } from '../../model/topup.ts';
import { keys } from '../keys.ts';
import { isEarly } from '../lua/age.ts';
import { outboxKeyNames, outboxLua } from '../lua/outbox.ts';
import { unwantedPurchaseLua } from '../lua/unwanted-purchase.ts';
import { readDueNow } from '../redis/read-due.ts';
import { number, type RecordStore, run, script, text } from '../script.ts';

/** Longer than the lease of a try: after a longer wait the clock of Redis must have gone back. */
const maxWaitMs = 3_600_000;

/**
 * Claims the purchase that a charge asked for, and leases it; its id and terms stay the same over all tries. Before its first try it is
 * dropped when it is not wanted, within the 72 hours, because a charge by a wrong clock asked for it, or past the monthly cap: the cap is
 * told by one mail a month (D82), and the balance is looked at again when the next month begins. A later try may find it paid, so it is leased
 * all the same, and `drop-purchase.ts` drops it.
 * Answers {'taken', id, JSON of its terms, time of the charge, number of this try, '1' while it is wanted}, {'capped'}, {'dropped'}, {'early'} or {'gone'}.
 */
const takePurchaseScript = script(
  'take-purchase',
  'always',
  ['account', 'plans', 'topup', 'purchases', 'topupLooks', 'bought', ...outboxKeyNames],
  ['accountId', 'lease', 'month', 'nextMonth', 'seenNow'],
)`${outboxLua}${unwantedPurchaseLua}
local at = redis.call('ZSCORE', purchases, accountId)
if not at then return { 'gone' } end
if ${isEarly('at', maxWaitMs)} then return { 'early' } end
local t = redis.call('HMGET', topup, 'purchase', 'enabled', 'monthly_cap_cents', 'price_cents', 'currency', 'purchase_attempts',
  'purchase_terms', 'purchase_since', 'cap_mailed_at', 'last_purchase_at')
-- Cost of this month's top-ups, without those that were taken back and those in another currency. The id of a top-up has the time of its
-- charge: one that is damaged counts as much as the next one.
local function spent()
  local sum, from, to, seen = 0, tonumber(month), tonumber(nextMonth), redis.call('HGETALL', bought)
  for n = 1, #seen, 2 do
    local p = read_json(seen[n + 1])
    local is_damaged = not p.state and string.sub(seen[n], 1, #accountId + 1) == accountId .. '-'
    local asked_at = is_damaged and tonumber(string.sub(seen[n], #accountId + 2))
    if asked_at then p = { kind = 'topup', state = 'paid', currency = t[5], ended_at = tonumber(asked_at), price_cents = tonumber(t[4]) } end
    local counts = p.kind == 'topup' and p.state == 'paid' and p.currency == t[5]
    if counts and p.ended_at >= from and p.ended_at < to then sum = sum + p.price_cents end
  end
  return sum
end
local function mail_cap()
  local mailed = tonumber(t[9] or '')
  if mailed and mailed >= tonumber(month) and mailed < tonumber(nextMonth) then return end
  undos[#undos + 1] = function() put_back(topup, { 'cap_mailed_at' }, { t[9] }) end
  redis.call('HSET', topup, 'cap_mailed_at', string.format('%d', now))
  put_mail('cap-' .. accountId, { kind = 'cap', account = accountId, cap_cents = tonumber(t[3]), price_cents = tonumber(t[4]),
    currency = t[5] })
end
if not t[1] or t[1] == '' then
  drop(t[1])
  return { 'dropped' }
end
local wanted = is_wanted(t[2])
if t[6] == '0' and not wanted then
  drop_unwanted(t[1])
  return { 'dropped' }
end
-- A jump of TIME is known to the caller only after its next reading.
local last, earliest_now = tonumber(t[10] or ''), math.min(now, tonumber(seenNow))
if t[6] == '0' and last and last <= now and earliest_now < last + ${topupCooldownMs} then
  look_again(string.format('%d', last + ${topupCooldownMs}))
  drop(t[1])
  return { 'dropped' }
end
local terms = t[7]
if t[6] == '0' then
  if t[3] and t[3] ~= '' and spent() + tonumber(t[4]) > tonumber(t[3]) then
    mail_cap()
    look_again(nextMonth)
    drop(t[1])
    return { 'capped' }
  end
  terms = {}
  for _, name in ipairs({ 'pack_title', 'pack_total', 'price_cents', 'currency', 'customer', 'payment_method' }) do
    terms[name] = redis.call('HGET', topup, name) or ''
  end
  terms = cjson.encode(terms)
end
undos[#undos + 1] = function() redis.pcall('ZADD', purchases, at, accountId) end
redis.call('ZADD', purchases, now + tonumber(lease), accountId)
redis.call('HSET', topup, 'purchase_terms', terms, 'purchase_attempts', string.format('%d', t[6] + 1))
return { 'taken', t[1], terms, t[8], t[6] + 1, wanted and '1' or '' }
`;

export interface TakenPurchase extends Purchase {
  /** Time of the charge that asked for it. */
  readonly since: number;
  readonly attempt: number;
  /** False when an earlier try may have been paid, and nothing is to be charged any more. */
  readonly isWanted: boolean;
}

/** Returns up to 100 accounts whose purchase is to be tried now. */
export function duePurchases(store: RecordStore): Promise<string[]> {
  return readDueNow(store, keys.purchases, maxWaitMs);
}

/** Claims the purchase of an account; 'capped' when the monthly cap forbids it, `null` when none is due. */
export async function takePurchase(
  store: RecordStore,
  accountId: string,
  leaseMs: number,
): Promise<TakenPurchase | 'capped' | null> {
  const seenNow = store.clock.now();
  const { start: month, end: nextMonth } = monthOf(seenNow);
  const reply = await run(store, takePurchaseScript, { accountId, lease: leaseMs, month, nextMonth, seenNow });
  if (reply[0] === 'capped') return 'capped';
  if (reply[0] !== 'taken') return null;
  const fields = JSON.parse(text(reply[2])) as Record<string, string>;
  return {
    id: text(reply[1]),
    account: accountId,
    kind: 'topup',
    pack_title: text(fields.pack_title),
    pack_total: Number(fields.pack_total),
    price_cents: Number(fields.price_cents),
    currency: text(fields.currency),
    customer: text(fields.customer),
    payment_method: text(fields.payment_method),
    since: number(reply[3]) ?? 0,
    attempt: Number(reply[4]),
    isWanted: text(reply[5]) === '1',
  };
}
