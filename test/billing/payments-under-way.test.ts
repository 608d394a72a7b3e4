import { expect } from 'chai';
import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { keys } from '../../src/store/keys.ts';
import { listPurchases } from '../../src/store/money/read-purchases.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { duePurchases } from '../../src/store/money/take-purchase.ts';
import type { TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, buyDue, eachWithStripe, spend, takenPurchase } from '../support/topups.ts';

const [lease, hour] = [90_001, 3_600_000];

describe('a payment whose first try lost its answer', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let parts: PaymentParts;
  let provider: PaymentProvider;
  eachWithStripe((payments) => {
    ({ store, stripe, provider, parts } = payments);
  });

  const lookAgain = async (passedMs: number) => {
    store.advance(passedMs);
    await buyDue(parts, stripe.url);
  };
  /** The payment that Stripe has for an account whose first try lost its answer. */
  const anUnansweredPayment = async (payment_method: string) => {
    const buyer = await aBuyer(store, { payment_method });
    await spend(store, buyer, 5);
    stripe.faults.push('after', 'after', 'after');
    const purchase = await takenPurchase(store, buyer);
    const lost = await provider.charge(purchase).catch((error: Error) => error);
    expect(lost).to.be.instanceOf(Error);
    return { account: buyer.accountId, payment: (await provider.find(purchase))?.payment ?? '' };
  };
  const stateOf = async (account: string) => ({
    enabled: (await readTopup(store, account)).enabled,
    ended: (await listPurchases(store, account)).map(({ state }) => state),
    packs: (await readSnapshot(store, account)).balances.packs.length,
  });

  it('is looked up although nine top-ups before it are damaged, which are named and tried again', async () => {
    const { account } = await anUnansweredPayment('pm_card');
    for (let n = 0; n < 9; n++) {
      await store.connection.send(['HSET', keys.topup(`damaged-${n}`), 'purchase', `damaged-${n}-1`]);
      await store.connection.send(['ZADD', keys.purchases, '1', `damaged-${n}`]);
    }
    store.advance(lease);
    const { lines, log } = aLog();
    const buying = startPurchases({ ...parts, provider, log, intervalMs: 60_000 });
    await buying.wake();
    await buying.close();
    expect(await stateOf(account)).to.deep.equal({ enabled: '1', ended: ['paid'], packs: 1 });
    expect(lines.filter((line) => line.includes('"account":"damaged-'))).to.have.length(9);
    expect(await duePurchases(store)).to.have.length(9);
  });

  for (const [method, state] of [
    ['pm_not_confirmed', 'requires_confirmation'],
    ['pm_not_attached', 'requires_payment_method'],
  ] as const) {
    it(`is waited for, and brings its pack, while Stripe still carries it out (${state})`, async () => {
      const { account, payment } = await anUnansweredPayment(method);
      await lookAgain(lease);
      expect(await stateOf(account)).to.deep.equal({ enabled: '1', ended: [], packs: 0 });
      stripe.finish(payment);
      await lookAgain(lease);
      expect(await stateOf(account)).to.deep.equal({ enabled: '1', ended: ['paid'], packs: 1 });
      expect(stripe.charges).to.have.length(1);
    });

    it(`is waited for although its top-up was disabled, while Stripe still carries it out (${state})`, async () => {
      const { account, payment } = await anUnansweredPayment(method);
      await setTopup(store, account, { enabled: '0' });
      await lookAgain(lease);
      expect(await stateOf(account)).to.deep.equal({ enabled: '0', ended: [], packs: 0 });
      stripe.finish(payment);
      await lookAgain(lease);
      expect(await stateOf(account)).to.deep.equal({ enabled: '0', ended: ['paid'], packs: 1 });
    });

    it(`is declined when Stripe has not carried it out within an hour (${state})`, async () => {
      const { account } = await anUnansweredPayment(method);
      await lookAgain(hour + lease);
      expect(await stateOf(account)).to.deep.equal({ enabled: '0', ended: ['declined'], packs: 0 });
    });
  }

  for (const method of ['pm_needs_action', 'pm_card_chargeDeclined'])
    it(`is declined at once when only its owner could still pay it (${method})`, async () => {
      const { account } = await anUnansweredPayment(method);
      await lookAgain(lease);
      expect(await stateOf(account)).to.deep.equal({ enabled: '0', ended: ['declined'], packs: 0 });
    });
});
