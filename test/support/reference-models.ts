import type { Key } from '../../src/model/account.ts';
import { type AccountBalances, type Balance, type Pack, subscriptionLeft } from '../../src/model/money.ts';
import { nextPossibleAt, type Topup } from '../../src/model/topup.ts';

// Decisions of the Lua of src/store, written a second time as pure functions: tests compare the store with these.

/** The balance that pays the next credit: subscription, then packs in their order, then credits (D42, D71). */
export function balanceToDraw(balances: AccountBalances): { readonly balance: Balance; readonly pack?: string } {
  if (subscriptionLeft(balances) > 0) return { balance: 'subscription' };
  const [pack] = balances.packs.filter(({ total, used }) => used < total).toSorted(comparePacks);
  if (pack) return { balance: 'packs', pack: pack.id };
  return { balance: balances.credits_given > balances.credits_consumed ? 'credits' : 'overdraft' };
}

function comparePacks(one: Pack, other: Pack): number {
  if (one.purchased_at !== other.purchased_at) return one.purchased_at - other.purchased_at;
  return one.id < other.id ? -1 : 1;
}

/** The balances after one credit was drawn. An overdraft changes nothing; the hold is left to its own release. */
export function draw(balances: AccountBalances): AccountBalances {
  const { balance, pack } = balanceToDraw(balances);
  switch (balance) {
    case 'subscription':
      return { ...balances, used: balances.used + 1 };
    case 'packs':
      return {
        ...balances,
        packs: balances.packs.map((one) => (one.id === pack ? { ...one, used: one.used + 1 } : one)),
      };
    case 'credits':
      return { ...balances, credits_consumed: balances.credits_consumed + 1 };
    case 'overdraft':
      return balances;
  }
}

/** The refusal that a key meets now, else `working`: inactive before expired. */
export function keyState(
  key: Pick<Key, 'active' | 'expires'>,
  now: number,
): 'working' | 'inactive_api_key' | 'expired_api_key' {
  if (!key.active) return 'inactive_api_key';
  return key.expires !== null && now > key.expires ? 'expired_api_key' : 'working';
}

/** State after a charge, which may cause a purchase. */
export interface AfterCharge {
  readonly remaining: number;
  readonly quota: number;
  /** In this UTC calendar month. */
  readonly spentThisMonthCents: number;
  readonly purchaseUnderWay: boolean;
}

/** Returns `buy` if a charge that left this much causes a purchase, `capped` if only the monthly cap prevents it (D49, D82). */
export function shouldBuy(topup: Topup, after: AfterCharge, now: number): 'buy' | 'capped' | 'no' {
  const { pack_title, pack_total, price_cents, currency, customer, payment_method } = topup;
  if (!topup.enabled || after.purchaseUnderWay) return 'no';
  if (pack_title === null || pack_total === null || price_cents === null || currency === null) return 'no';
  if (customer === null || payment_method === null) return 'no';
  const { threshold_percent, monthly_cap_cents } = topup;
  if (now < (nextPossibleAt(topup) ?? 0)) return 'no';
  if (after.remaining * 100 >= threshold_percent * (after.quota + pack_total)) return 'no';
  const isCapped = monthly_cap_cents !== null && after.spentThisMonthCents + price_cents > monthly_cap_cents;
  return isCapped ? 'capped' : 'buy';
}
