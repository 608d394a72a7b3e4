import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Purchase, Seller } from '../model/purchase.ts';
import { endPurchase } from '../store/money/end-purchase.ts';
import { findPurchase } from '../store/money/read-purchases.ts';
import { reversePurchase } from '../store/money/reverse-purchase.ts';
import { setTopup } from '../store/money/set-topup.ts';
import type { RecordStore } from '../store/script.ts';
import type { PaymentEvent } from './payment-provider.ts';

export interface PaymentBooks {
  readonly store: RecordStore;
  readonly seller: Seller;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Writes an answer or event of the provider into the record; repetitions and any order of them change nothing more. */
export async function applyPayment(books: PaymentBooks, event: PaymentEvent): Promise<void> {
  const { store, seller, metrics, log } = books;
  if (event.kind === 'stored') return setTopup(store, event.account, methodOf(event), { at: event.at, is: 'stored' });
  if (event.kind === 'refunded' || event.kind === 'disputed') return reverse(books, event);
  const { purchase, payment } = event;
  const outcome =
    event.kind === 'paid'
      ? await endPurchase(store, purchase, { verdict: 'paid', payment, seller })
      : await endPurchase(store, purchase, { verdict: 'declined', payment, reason: event.reason });
  // The first card that pays for a pack is the one that a top-up may charge; another one is stored on purpose. An event that comes
  // again finds the purchase ended and the card perhaps not stored.
  if (event.kind === 'paid' && purchase.kind === 'offer')
    await setTopup(store, purchase.account, methodOf(purchase), { at: event.at, is: 'paying' });
  if (outcome === 'stale') return;
  metrics.purchases_total.inc({ outcome });
  log.info('a purchase has ended', { account: purchase.account, purchase: purchase.id, outcome });
}

function methodOf({ customer, payment_method }: Pick<Purchase, 'customer' | 'payment_method'>) {
  return { customer, payment_method };
}

async function reverse(
  { store, metrics, log }: PaymentBooks,
  event: Extract<PaymentEvent, { kind: 'refunded' | 'disputed' }>,
): Promise<void> {
  const purchase = event.kind === 'refunded' ? event.purchase : await findPurchase(store, event.payment);
  if (purchase === null) {
    log.warn('a payment that is unknown here is disputed', { payment: event.payment });
    return;
  }
  const lapsed = await reversePurchase(store, purchase, event.kind, event.payment);
  if (lapsed === null) return;
  metrics.purchases_total.inc({ outcome: event.kind });
  metrics.lapses_total.inc({ balance: 'packs' }, lapsed);
  const { account, id } = purchase;
  log.warn('a payment was taken back: the unused rest of its pack lapsed', {
    account,
    purchase: id,
    lapsed,
    ...{ state: event.kind },
  });
}
