import { monthOf } from '../../model/billing-period.ts';
import { balanceKeyNames, balances } from '../lua/balances.ts';
import { type RecordStore, run, script } from '../script.ts';
import { withRolledPeriod } from './roll-period.ts';
import type { Purchase } from './take-purchase.ts';

/**
 * Ends a purchase, once: paid adds the pack and starts the 72 hours; declined disables the setting (D49).
 * Answers {'paid'}, {'declined'}, {'stale'}, {'not_found'} or {'roll'}.
 */
const endPurchaseScript = script(
  'end-purchase',
  'always',
  balanceKeyNames,
  ['accountId', 'id', 'verdict', 'json', 'total', 'cents', 'month', 'purchasedAt'] as const,
  /* lua */ `${balances}
if redis.call('HGET', topup, 'purchase') ~= id then return { 'stale' } end
local refused = read_balances()
if refused then return refused end
local due = redis.call('ZSCORE', purchases, accountId)
local seen = redis.call('HMGET', topup, 'spent_month', 'spent_cents')
if verdict == 'paid' then
  book_plan_quota()
  grant_pack(id, json, tonumber(total), purchasedAt)
else
  set_field('topup', '')
end
write_balances()
undos[#undos + 1] = function()
  if due then redis.pcall('ZADD', purchases, due, accountId) end
end
redis.call('ZREM', purchases, accountId)
if verdict == 'paid' then
  local spent = seen[1] == month and tonumber(seen[2] or '0') or 0
  redis.call('HSET', topup, 'purchase', '', 'last_purchase_at', now, 'spent_month', month, 'spent_cents', spent + tonumber(cents))
  return { 'paid' }
end
redis.call('HSET', topup, 'purchase', '', 'enabled', '0')
return { 'declined' }
`,
);

export async function endPurchase(
  store: RecordStore,
  purchase: Purchase,
  verdict: 'paid' | 'declined',
): Promise<'paid' | 'declined' | 'stale'> {
  const now = store.clock.now();
  const { id, account, pack_title, pack_total, price_cents } = purchase;
  const [word] = await withRolledPeriod(store, account, () =>
    run(store, endPurchaseScript, {
      accountId: account,
      id,
      verdict,
      json: JSON.stringify({ title: pack_title, purchased_at: now, total: pack_total }),
      total: pack_total,
      cents: price_cents,
      month: monthOf(now).start,
      purchasedAt: now,
    }),
  );
  return word === 'paid' || word === 'declined' ? word : 'stale';
}
