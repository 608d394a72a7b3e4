import { expect } from 'chai';
import { applyPayment, type PaymentParts } from '../../src/billing/apply-payment.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { duePurchases } from '../../src/store/money/take-purchase.ts';
import type { TestStore } from '../support/record.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, eachWithStripe, spend, takenPurchase } from '../support/topups.ts';

const hour = 3_600_000;

describe('limit-topup-cooldown: a charge while the clock of Redis has jumped', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let provider: PaymentProvider;
  let parts: PaymentParts;
  let isSteady: boolean;
  eachWithStripe((given) => {
    ({ store, stripe, provider, parts } = given);
    isSteady = true;
  });

  /** Moves the clock, looks at what is due, and returns how often was paid until now. */
  const paidAfter = async (passedMs: number): Promise<number> => {
    store.advance(passedMs);
    const clock = { now: Date.now, machineAheadMs: () => 0, isSteady: () => isSteady };
    const seen = { ...store, connection: { ...store.connection, clock } };
    const buying = startPurchases({ ...parts, store: seen, provider, intervalMs: 60_000 });
    for (const _ of [1, 2]) await buying.wake();
    await buying.close();
    return stripe.charges.length;
  };
  /** An account that has bought once, and whose next charge falls below its threshold. */
  const aBuyerOnce = async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    expect(await paidAfter(0)).to.equal(1);
    await spend(store, buyer, 9);
    return buyer;
  };

  for (const wrongMs of [80 * hour, -80 * hour])
    it(`buys nothing within 72 hours of the last purchase when it was ${Math.sign(wrongMs) * 80} hours off for a moment`, async () => {
      const buyer = await aBuyerOnce();
      isSteady = false;
      store.advance(wrongMs);
      await spend(store, buyer, 1);
      expect(await paidAfter(0), 'while it is wrong').to.equal(1);
      expect(await paidAfter(-wrongMs), 'when it is right').to.equal(1);
      isSteady = true;
      expect(await paidAfter(0), 'when it has been steady').to.equal(1);
      await spend(store, buyer, 1);
      expect(await paidAfter(hour), 'after another charge').to.equal(1);
      expect(await duePurchases(store)).to.deep.equal([]);
      store.advance(71 * hour);
      await spend(store, buyer, 1);
      expect(await paidAfter(0), 'after 72 hours').to.equal(2);
      expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
    });

  it('buys nothing within 72 hours of the last purchase when it jumped ahead a moment ago, and the controller has not read it since', async () => {
    const buyer = await aBuyerOnce();
    const before = store.clock.now();
    store.advance(80 * hour);
    await spend(store, buyer, 1);
    const buying = startPurchases({
      ...{ ...parts, provider, intervalMs: 60_000 },
      store: { ...store, clock: { ...store.clock, now: () => before, offset: () => store.clock.offset() } },
    });
    await buying.wake();
    await buying.close();
    expect(stripe.charges).to.have.length(1);
    expect(await duePurchases(store)).to.deep.equal([]);
  });

  for (const kind of ['paid', 'refunded'] as const)
    it(`begins the 72 hours of a purchase that is told to be ${kind} while the clock is behind no earlier than it was asked for`, async () => {
      const buyer = await aBuyer(store);
      await spend(store, buyer, 5);
      const { since: _, attempt: __, isWanted: ___, ...purchase } = await takenPurchase(store, buyer);
      const { payment } = await provider.charge({ ...purchase, since: store.clock.now(), attempt: 1, isWanted: true });
      store.advance(-80 * hour);
      await applyPayment(parts, { kind, purchase, payment, at: store.clock.now() }, 'evt_1');
      store.advance(80 * hour);
      await spend(store, buyer, kind === 'paid' ? 12 : 1);
      expect(await paidAfter(71 * hour)).to.equal(1);
      await spend(store, buyer, 1);
      expect(await paidAfter(0)).to.equal(1);
    });

  it('begins the 72 hours of a purchase when its payment is told, although its refund was told before while the clock was behind', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    const { since: _, attempt: __, isWanted: ___, ...purchase } = await takenPurchase(store, buyer);
    store.advance(10 * hour);
    const { payment } = await provider.charge({ ...purchase, since: store.clock.now(), attempt: 1, isWanted: true });
    const tell = (kind: 'paid' | 'refunded', event: string) =>
      applyPayment(parts, { kind, purchase, payment, at: store.clock.now() }, event);
    store.advance(-80 * hour);
    await tell('refunded', 'evt_1');
    store.advance(80 * hour);
    await tell('paid', 'evt_2');
    store.advance(71 * hour);
    await spend(store, buyer, 1);
    expect(await paidAfter(0), 'within 72 hours of the payment').to.equal(1);
    await tell('paid', 'evt_2');
    store.advance(hour);
    await spend(store, buyer, 1);
    expect(await paidAfter(0), 'after 72 hours').to.equal(2);
  });

  it('keeps the 72 hours of the last purchase when money for an earlier one arrives while the clock is behind', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    const { since: _, attempt: __, isWanted: ___, ...purchase } = await takenPurchase(store, buyer, 0);
    expect(await paidAfter(0)).to.equal(1);
    store.advance(-80 * hour);
    const earlier = { ...purchase, id: `${purchase.account}-1` };
    await applyPayment(parts, { kind: 'paid', purchase: earlier, payment: 'pi_late', at: store.clock.now() }, 'evt_1');
    store.advance(80 * hour);
    await spend(store, buyer, 22);
    expect(await paidAfter(71 * hour)).to.equal(1);
    await spend(store, buyer, 1);
    expect(await paidAfter(0)).to.equal(1);
  });
});
