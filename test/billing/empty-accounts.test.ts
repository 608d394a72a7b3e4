import { expect } from 'chai';
import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import { changeTopup } from '../../src/billing/change-topup.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';
import { monthOf } from '../../src/model/billing-period.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { lookAtTopup } from '../../src/store/money/look-at-topup.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { takePurchase } from '../../src/store/money/take-purchase.ts';
import { aPlan, ask, type TestStore } from '../support/record.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, eachWithStripe, spend, takenPurchase } from '../support/topups.ts';

const [minute, hour] = [60_000, 3_600_000];

describe('the automatic top-up of an account that has no more charges', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let provider: PaymentProvider;
  let parts: PaymentParts;
  eachWithStripe((given) => {
    ({ store, stripe, provider, parts } = given);
  });
  // Each test begins with a month, so that it knows how far the next one is.
  beforeEach(() => store.advance(monthOf(store.clock.now()).end - store.clock.now() + hour));

  /** Lets two controllers look at what is due; returns how often was paid until now. */
  const paidAfter = async (passedMs = 0, seen: TestStore = store): Promise<number> => {
    store.advance(passedMs);
    const controllers = [1, 2].map(() => startPurchases({ ...parts, store: seen, provider, intervalMs: 60_000 }));
    await Promise.all(controllers.map((one) => one.wake()));
    await Promise.all(controllers.map((one) => one.close()));
    return stripe.charges.length;
  };
  const looks = async () => Number(await store.connection.send(['ZCARD', keys.topupLooks]));
  const left = async (account: string) => {
    const { balances } = await readSnapshot(store, account);
    return balances.quota - balances.used + balances.packs.reduce((sum, { total, used }) => sum + total - used, 0);
  };
  /** An account that has used up its plan and the pack that its top-up bought, all within the 72 hours. */
  const anEmptyBuyer = async (change: Record<string, string> = {}) => {
    const buyer = await aBuyer(store, change);
    await spend(store, buyer, 5);
    await paidAfter();
    await spend(store, buyer, 15);
    expect(await ask(store, buyer)).to.include({ refused: 'payment_required' });
    return buyer;
  };

  /** A purchase that was paid, and whose answer the controller has not taken. */
  const openPurchase = async (buyer: Awaited<ReturnType<typeof aBuyer>>) =>
    provider.charge(await takenPurchase(store, buyer));

  it('buys when the 72 hours after its last purchase are over', async () => {
    const { accountId } = await anEmptyBuyer();
    expect([await paidAfter(71 * hour), await paidAfter(hour), await left(accountId)]).to.deep.equal([1, 2, 10]);
    expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
  });

  it('D82: buys when the month begins that follows a month at its cap', async () => {
    const { accountId } = await anEmptyBuyer({ monthly_cap_cents: '990' });
    const next = monthOf(store.clock.now()).end;
    expect(await paidAfter(72 * hour)).to.equal(1);
    expect((await readTopup(store, accountId)).cap_mailed_at).to.be.a('string');
    expect(await paidAfter(next - store.clock.now() - minute)).to.equal(1);
    expect([await paidAfter(2 * minute), await left(accountId)]).to.deep.equal([2, 10]);
  });

  it('D82: buys when its cap was raised after it was reached, and by the next purchase as ever', async () => {
    const { accountId, ...buyer } = await anEmptyBuyer({ monthly_cap_cents: '990' });
    expect(await paidAfter(72 * hour)).to.equal(1);
    await changeTopup(store, accountId, { monthly_cap_cents: 2970 }, { by: 'owner', hasProvider: true });
    expect([await paidAfter(), await left(accountId)]).to.deep.equal([2, 10]);
    await spend(store, { accountId, ...buyer }, 10);
    expect([await paidAfter(71 * hour), await paidAfter(hour)]).to.deep.equal([2, 3]);
  });

  it('D82: does not wait for the next month when it was capped and has bought since', async () => {
    const buyer = await aBuyer(store, { monthly_cap_cents: '1' });
    await spend(store, buyer, 9);
    expect([await paidAfter(), await looks()]).to.deep.equal([0, 1]);
    await setTopup(store, buyer.accountId, { monthly_cap_cents: '2000', enabled: '0' });
    await setTopup(store, buyer.accountId, { enabled: '1' });
    await spend(store, buyer, 1);
    expect(await paidAfter()).to.equal(1);
    await spend(store, buyer, 10);
    expect([await paidAfter(71 * hour), await paidAfter(hour)]).to.deep.equal([1, 2]);
  });

  it('D49: buys nothing without a charge while something is left', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 9);
    expect(await paidAfter()).to.equal(1);
    await spend(store, buyer, 10);
    expect([await left(buyer.accountId), await looks(), await paidAfter(100 * hour)]).to.deep.equal([1, 0, 1]);
    await spend(store, buyer, 1);
    expect(await paidAfter()).to.equal(2);
  });

  it('topup-enable: buys nothing when it is enabled for an empty account', async () => {
    const buyer = await aBuyer(store, { enabled: '0' });
    await spend(store, buyer, 10);
    await changeTopup(store, buyer.accountId, { enabled: true }, { by: 'owner', hasProvider: true });
    expect([await looks(), await paidAfter(100 * hour)]).to.deep.equal([0, 0]);
  });

  it('topup-disable: buys nothing, and is looked at no more, when it is disabled, without a paid plan, removed or full again', async () => {
    const [disabled, free, removed, full] = [
      await anEmptyBuyer(),
      await anEmptyBuyer(),
      await anEmptyBuyer(),
      await anEmptyBuyer(),
    ];
    await setTopup(store, disabled.accountId, { enabled: '0' });
    await aPlan(store, 'free', { paid: false });
    await setAccount(store, free.accountId, { plan: 'free' });
    await removeAccount(store, removed.accountId, removed.slug);
    await aPlan(store, full.plan, { quota: 100, paid: true });
    expect([await looks(), stripe.charges.length]).to.deep.equal([4, 4]);
    expect([await paidAfter(73 * hour), await looks()]).to.deep.equal([4, 0]);
  });

  it('limit-topup-cooldown: buys again 72 hours after the clock was right again that was ahead during a purchase', async () => {
    const buyer = await aBuyer(store);
    const ahead = 400 * 24 * hour;
    store.advance(ahead);
    await spend(store, buyer, 5);
    expect(await paidAfter()).to.equal(1);
    store.advance(-ahead);
    await spend(store, buyer, 10);
    expect(await paidAfter()).to.equal(1);
    store.advance(71 * hour);
    await spend(store, buyer, 1);
    expect(await paidAfter()).to.equal(1);
    store.advance(hour);
    await spend(store, buyer, 1);
    expect(await paidAfter()).to.equal(2);
    expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
  });

  const closures = [
    ['suspended', { suspended: true }, { suspended: false }],
    ['blocked by an unpaid invoice', { invoice: 'unpaid' }, { invoice: 'paid' }],
  ] as const;
  for (const [state, closed, open] of closures) {
    it(`buys nothing for an account that is ${state}, and buys within an hour after`, async () => {
      const { accountId } = await anEmptyBuyer();
      await setAccount(store, accountId, closed);
      expect([await paidAfter(72 * hour), await paidAfter(2 * hour), await looks()]).to.deep.equal([1, 1, 1]);
      await setAccount(store, accountId, open);
      expect([await paidAfter(hour), await left(accountId)]).to.deep.equal([2, 10]);
    });

    it(`buys nothing for a charge that was made before the account was ${state}`, async () => {
      const buyer = await aBuyer(store);
      await spend(store, buyer, 9);
      await setAccount(store, buyer.accountId, closed);
      expect([await paidAfter(), await paidAfter(2 * hour)]).to.deep.equal([0, 0]);
      await setAccount(store, buyer.accountId, open);
      await spend(store, buyer, 1);
      expect(await paidAfter()).to.equal(1);
    });
  }

  it('buys nothing for a charge that was made before the account lost its paid plan, nor by itself when it has one again', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 10);
    await setAccount(store, buyer.accountId, { plan: null });
    expect([await paidAfter(), await looks()]).to.deep.equal([0, 0]);
    await setAccount(store, buyer.accountId, { plan: buyer.plan });
    expect(await paidAfter(2 * hour)).to.equal(0);
    await spend(store, buyer, 6);
    expect(await paidAfter()).to.equal(1);
  });

  it('limit-topup-cooldown: buys no earlier after a moment in which the clock of Redis was wrong', async () => {
    await anEmptyBuyer();
    const clock = { now: Date.now, machineAheadMs: () => 0, isSteady: () => false };
    const jumped = { ...store, connection: { ...store.connection, clock } };
    for (const wrongMs of [-9_000 * hour, 80 * hour]) {
      expect(await paidAfter(wrongMs, jumped)).to.equal(1);
      expect(await paidAfter(-wrongMs)).to.equal(1);
    }
    expect(await paidAfter(73 * hour)).to.equal(2);
  });

  it('buys when the clock of Redis was wrong for a moment that its controller did not see', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 10);
    const right = store.clock.now();
    store.advance(40 * 24 * hour);
    const unaware = { ...store, clock: { ...store.clock, now: () => right } };
    const purchase = await takePurchase(unaware, buyer.accountId, minute);
    expect(purchase).to.include({ account: buyer.accountId, isWanted: true });
    store.advance(-40 * 24 * hour);
    expect(await paidAfter(minute)).to.equal(1);
  });

  it('buys once when the purchase of a charge is under way at the end of the 72 hours', async () => {
    const buyer = await anEmptyBuyer();
    store.advance(73 * hour);
    await grantCredits(store, buyer.accountId, 1);
    await spend(store, buyer, 1);
    const { payment } = await openPurchase(buyer);
    for (const _ of [1, 2]) await lookAtTopup(store, buyer.accountId);
    expect(await looks()).to.equal(0);
    expect([stripe.charges.at(-1)?.id, await paidAfter(2 * minute)]).to.deep.equal([payment, 2]);
    expect(await left(buyer.accountId)).to.equal(10);
  });
});
