import { makeMetrics } from '../../src/base/metrics.ts';
import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { duePurchases, type TakenPurchase, takePurchase } from '../../src/store/money/take-purchase.ts';
import { eachWithEmptyRecord } from './empty-record.ts';
import { type AccountOptions, anAccount, aRunningJob, completed, holder, lead, type TestStore } from './record.ts';
import { aLog } from './redis.ts';
import { type StripeStandIn, startStripe } from './stripe-stand-in.ts';

type Buyer = Awaited<ReturnType<typeof anAccount>>;

export const seller = { name: 'Films Ltd', address: '1 Main Street', tax: 'VAT 0 %' };

/** An account on a paid plan of 10 credits whose top-up buys 10 more for 9.90 EUR below 30 %: 5 charges ask for it. */
export async function aBuyer(
  store: TestStore,
  change: Record<string, string> = {},
  more: AccountOptions = {},
): Promise<Buyer> {
  const buyer = await anAccount(store, { quota: 10, paid: true, ...more });
  await setTopup(store, buyer.accountId, {
    ...{
      enabled: '1',
      threshold_percent: '30',
      pack_title: 'Auto',
      pack_total: '10',
      price_cents: '990',
      currency: 'eur',
    },
    ...{ customer: `cus_${buyer.slug}`, payment_method: 'pm_card_visa', ...change },
  });
  return buyer;
}

/** An empty record, a stand-in for Stripe, and what carries out payments between both. */
interface Payments {
  readonly store: TestStore;
  readonly stripe: StripeStandIn;
  readonly provider: PaymentProvider;
  readonly parts: PaymentParts;
}

export function eachWithStripe(given: (payments: Payments) => void): void {
  let store: TestStore;
  let stripe: StripeStandIn;
  eachWithEmptyRecord((made) => {
    store = made;
  });
  beforeEach(async () => {
    await lead(store, holder);
    stripe = await startStripe();
    const provider = openStripe({ key: () => 'sk_test_1', url: stripe.url, now: store.clock.now });
    const parts = { store, provider, seller, metrics: makeMetrics(), log: aLog().log };
    given({ store, stripe, provider, parts });
  });
  afterEach(() => stripe.stop());
}

/** Lets jobs of the account complete one after another. */
export async function spend(store: TestStore, buyer: Buyer, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await settleJob(store, holder, await aRunningJob(store, buyer), completed);
}

export async function takenPurchase(store: TestStore, buyer: Buyer, leaseMs = 60_000): Promise<TakenPurchase> {
  const purchase = await takePurchase(store, buyer.accountId, leaseMs);
  if (purchase === null || purchase === 'capped') throw new Error(`no purchase: ${purchase}`);
  return purchase;
}

/** Looks at the purchases that are due until none is. */
export async function buyDue(parts: Omit<PaymentParts, 'provider'>, stripeUrl: string): Promise<void> {
  const provider = openStripe({ key: () => 'sk_test_1', url: stripeUrl, now: parts.store.clock.now });
  const buying = startPurchases({ ...parts, provider, intervalMs: 60_000 });
  while ((await duePurchases(parts.store)).length > 0) await buying.wake();
  await buying.close();
}
