import type { Purchase, Seller } from '../model/purchase.ts';
import { endPurchase } from '../store/money/end-purchase.ts';
import { findPurchase } from '../store/money/read-purchases.ts';
import { reversePurchase } from '../store/money/reverse-purchase.ts';
import { setTopup } from '../store/money/set-topup.ts';
import type { UpkeepParts } from '../store/upkeep-parts.ts';
import type { PaymentNews, PaymentProvider } from './payment-provider.ts';

export interface PaymentParts extends UpkeepParts {
  /** `null` where nothing can be bought; events of earlier purchases may still come. */
  readonly provider: Pick<PaymentProvider, 'purchase'> | null;
  readonly seller: Seller;
}

/**
 * Writes an answer or event of the provider into the record; repetitions and any order of them change nothing more. An event is noted by
 * its id, '' for an answer, in the script that carries it out, the last one where there are two.
 */
export async function applyPayment(parts: PaymentParts, news: PaymentNews, id = ''): Promise<void> {
  const { store, seller, metrics, log } = parts;
  if (news.kind === 'stored') return setTopup(store, news.account, methodOf(news), { id, at: news.at, is: 'stored' });
  if (news.kind === 'refunded' || news.kind === 'disputed') return reverse(parts, news, id);
  const { purchase, payment } = news;
  const outcome =
    news.kind === 'paid'
      ? await endPurchase(store, purchase, { verdict: 'paid', payment, seller }, id)
      : await endPurchase(store, purchase, { verdict: 'declined', payment, reason: news.reason }, id);
  if (outcome === 'unbooked') {
    metrics.purchases_total.inc({ outcome });
    log.error('a payment for an account that is removed or unknown must be refunded by hand', {
      ...{ account: purchase.account, purchase: purchase.id, payment },
    });
    return;
  }
  // The first card that pays for a pack is the one that a top-up may charge; another one is stored on purpose. An event whose first
  // half was carried out finds the purchase ended and the card perhaps not stored.
  if (news.kind === 'paid' && purchase.kind === 'offer')
    await setTopup(store, purchase.account, methodOf(purchase), { id, at: news.at, is: 'paying' });
  if (outcome === 'stale') return;
  metrics.purchases_total.inc({ outcome });
  log.info('a purchase has ended', { account: purchase.account, purchase: purchase.id, outcome });
}

function methodOf({ customer, payment_method }: Pick<Purchase, 'customer' | 'payment_method'>) {
  return { customer, payment_method };
}

async function reverse(
  { store, provider, metrics, log }: PaymentParts,
  news: Extract<PaymentNews, { kind: 'refunded' | 'disputed' }>,
  eventId: string,
): Promise<void> {
  // A dispute may be reported before its payment: the record does not know the payment yet, the provider does.
  const disputed = async () => (await findPurchase(store, news.payment)) ?? provider?.purchase(news.payment) ?? null;
  const purchase = news.kind === 'refunded' ? news.purchase : await disputed();
  if (purchase === null) {
    log.warn('a payment is disputed that is for no known purchase', { payment: news.payment });
    return;
  }
  const lapsed = await reversePurchase(store, purchase, news.kind, news.payment, eventId);
  if (lapsed === null) return;
  const told = { account: purchase.account, purchase: purchase.id, state: news.kind };
  if (lapsed === 'not_found') {
    log.error('a payment of an account that is unknown was taken back', told);
    return;
  }
  metrics.purchases_total.inc({ outcome: news.kind });
  metrics.lapses_total.inc({ balance: 'packs' }, lapsed);
  log.warn('a payment was taken back: the unused rest of its pack lapsed', { ...told, lapsed });
}
