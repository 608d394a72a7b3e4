import { expect } from 'chai';
import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';

import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { listPurchases } from '../../src/store/money/read-purchases.ts';
import { readTopup } from '../../src/store/money/set-topup.ts';
import type { TestStore } from '../support/record.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, buyDue, eachWithStripe, spend } from '../support/topups.ts';

/** Deleted at Stripe, or stored by a key of the test mode before one of the live mode. */
describe('a customer that Stripe does not know', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let parts: PaymentParts;
  let provider: PaymentProvider;
  eachWithStripe((payments) => {
    ({ store, stripe, provider, parts } = payments);
  });

  it('a purchase of a customer that Stripe does not know is declined, also when it is older than the idempotency key', async () => {
    for (const hours of [0, 26]) {
      const buyer = await aBuyer(store);
      await spend(store, buyer, 5);
      // The library tries three times.
      if (hours > 0) stripe.faults.push('before', 'before', 'before');
      if (hours > 0) await buyDue(parts, stripe.url);
      stripe.lostCustomers.add(`cus_${buyer.slug}`);
      store.advance(hours * 3_600_000);
      await buyDue(parts, stripe.url);
      const [purchase] = await listPurchases(store, buyer.accountId);
      expect(purchase, `${hours} hours`).to.include({ state: 'declined' });
      expect(purchase?.reason).to.match(/^No such customer/);
      expect((await readTopup(store, buyer.accountId)).enabled).to.equal('0');
      await removeAccount(store, buyer.accountId, buyer.slug);
    }
    expect(stripe.charges).to.have.length(0);
  });

  it('an owner whose customer Stripe does not know gets to the checkout as a new one', async () => {
    const { accountId, slug } = await aBuyer(store);
    const customer = `cus_${slug}`;
    const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };
    const url = 'https://t.example';
    const about = { account: { id: accountId, name: slug }, email: 'ada@example.com', returnUrl: url, paidUrl: url };
    stripe.lostCustomers.add(customer);
    for (const [id, bought] of [
      ['visit-1', offer],
      ['visit-2', null],
    ] as const) {
      const before = stripe.visits.length;
      expect(await provider.checkout({ id, customer, offer: bought, ...about })).to.equal(
        'https://checkout.example/pay',
      );
      const [made, session] = stripe.visits.slice(before);
      expect(made).to.include({ path: '/v1/customers' });
      expect(session?.form.customer).to.equal(made?.id);
    }
  });
});
