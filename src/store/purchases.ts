import { monthOf } from '../model/period.ts';
import { keys } from './keys.ts';
import { bookKeys, rolling } from './period.ts';
import { pairs, run, type Store, text } from './script.ts';
import { endPurchase as endPurchaseScript } from './scripts/end-purchase.ts';
import { setTopup as setTopupScript } from './scripts/set-topup.ts';
import { takePurchase as takePurchaseScript } from './scripts/take-purchase.ts';

/** A purchase that was claimed: its id and its terms stay the same over all its tries. */
export interface Purchase {
  readonly id: string;
  readonly account: string;
  readonly pack_title: string;
  readonly pack_total: number;
  readonly price_cents: number;
  readonly currency: string;
  readonly customer: string;
  readonly payment_method: string;
}

/** Changes fields of an account's top-up setting; everything is text, nothing is ''. */
export async function setTopup(store: Store, account: string, fields: Readonly<Record<string, string>>): Promise<void> {
  await run(
    store,
    setTopupScript,
    { account: keys.account(account), topup: keys.topup(account) },
    { fields: JSON.stringify(fields) },
  );
}

/** Fields of an account's top-up setting. */
export async function readTopup(store: Store, account: string): Promise<Record<string, string>> {
  return pairs(await store.connection.read(['HGETALL', keys.topup(account)], keys.topup(account)));
}

/** Accounts whose purchase is to be tried now. */
export async function duePurchases(store: Store): Promise<string[]> {
  return (await store.connection.read(
    ['ZRANGEBYSCORE', keys.purchases, '-inf', String(store.clock.now()), 'LIMIT', '0', '100'],
    keys.purchases,
  )) as string[];
}

/** Claims the purchase of an account; 'capped' when the month's cap forbids it, `null` when there is none to make. */
export async function takePurchase(
  store: Store,
  account: string,
  leaseMilliseconds: number,
): Promise<Purchase | 'capped' | null> {
  const reply = await run(
    store,
    takePurchaseScript,
    { topup: keys.topup(account), purchases: keys.purchases },
    { accountId: account, lease: leaseMilliseconds, month: monthOf(store.clock.now()).start },
  );
  if (reply[0] === 'capped') return 'capped';
  if (reply[0] !== 'taken') return null;
  const fields = JSON.parse(text(reply[2])) as Record<string, string>;
  return {
    id: text(reply[1]),
    account,
    pack_title: text(fields.pack_title),
    pack_total: Number(fields.pack_total),
    price_cents: Number(fields.price_cents),
    currency: text(fields.currency),
    customer: text(fields.customer),
    payment_method: text(fields.payment_method),
  };
}

/** Ends a purchase once: paid adds its pack, declined disables the setting. */
export async function endPurchase(
  store: Store,
  purchase: Purchase,
  verdict: 'paid' | 'declined',
): Promise<'paid' | 'declined' | 'stale'> {
  const now = store.clock.now();
  const { id, account, pack_title, pack_total, price_cents } = purchase;
  const [word] = await rolling(store, account, () =>
    run(store, endPurchaseScript, bookKeys(account), {
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
