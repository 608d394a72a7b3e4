import type { Key } from '../../src/model/account.ts';
import { type AccountBalances, type Balance, packOrder, subscriptionLeft } from '../../src/model/money.ts';

// What the Lua of src/store decides, written a second time as pure functions: tests compare the store with these.

/** The balance that pays the next credit: subscription, then packs in their order, then credits (D42, D71). */
export function balanceToDraw(books: AccountBalances): { readonly balance: Balance; readonly pack?: string } {
  if (subscriptionLeft(books) > 0) return { balance: 'subscription' };
  const pack = packOrder(books.packs).find(({ total, used }) => used < total);
  if (pack) return { balance: 'packs', pack: pack.id };
  return { balance: books.credits_given > books.credits_consumed ? 'credits' : 'overdraft' };
}

/** The books after one credit was drawn. An overdraft changes nothing; the hold is left to its own release. */
export function draw(books: AccountBalances): AccountBalances {
  const { balance, pack } = balanceToDraw(books);
  switch (balance) {
    case 'subscription':
      return { ...books, used: books.used + 1 };
    case 'packs':
      return { ...books, packs: books.packs.map((one) => (one.id === pack ? { ...one, used: one.used + 1 } : one)) };
    case 'credits':
      return { ...books, credits_consumed: books.credits_consumed + 1 };
    case 'overdraft':
      return books;
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
