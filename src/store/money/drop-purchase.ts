import { outboxLua } from '../lua/outbox.ts';
import { unwantedPurchaseLua } from '../lua/unwanted-purchase.ts';
import { type RecordStore, run, script, text } from '../script.ts';
import type { TakenPurchase } from './take-purchase.ts';

/**
 * Drops a purchase of which the provider knew no payment after this try. While the provider was asked the purchase may have become wanted
 * again, ended, or been tried once more: it then stays as it is. Answers {'dropped'} or {'early'}.
 */
const dropPurchaseScript = script(
  'drop-purchase',
  'always',
  ['account', 'plans', 'topup', 'purchases', 'topupLooks'],
  ['accountId', 'id', 'attempt', 'seenNow'],
)`${outboxLua}${unwantedPurchaseLua}
local current, enabled, attempts = unpack(redis.call('HMGET', topup, 'purchase', 'enabled', 'purchase_attempts'))
if current ~= id or attempts ~= attempt or is_wanted(enabled) then return { 'early' } end
drop_unwanted(id)
return { 'dropped' }
`;

/** Returns false for a purchase that has become wanted, has ended or was tried again since it was taken: it stays. */
export async function dropPurchase(
  store: RecordStore,
  { account: accountId, id, attempt }: Pick<TakenPurchase, 'account' | 'id' | 'attempt'>,
): Promise<boolean> {
  const [word] = await run(store, dropPurchaseScript, { accountId, id, attempt, seenNow: store.clock.now() });
  return text(word) === 'dropped';
}
