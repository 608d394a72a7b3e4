import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { duePurchases, type TakenPurchase, takePurchase } from '../../src/store/money/take-purchase.ts';
import { type AccountOptions, anAccount, aRunningJob, completed, holder, type TestStore } from './record.ts';

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
  const buying = startPurchases({ ...parts, provider, lookMs: 60_000 });
  while ((await duePurchases(parts.store)).length > 0) await buying.wake();
  await buying.close();
}
