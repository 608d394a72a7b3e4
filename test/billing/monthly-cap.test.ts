import { expect } from 'chai';
import { monthOf } from '../../src/model/billing-period.ts';
import { spentIn } from '../../src/model/purchase.ts';
import { keys } from '../../src/store/keys.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { listPurchases } from '../../src/store/money/read-purchases.ts';
import { reversePurchase } from '../../src/store/money/reverse-purchase.ts';
import { setTopup } from '../../src/store/money/set-topup.ts';
import { duePurchases, takePurchase } from '../../src/store/money/take-purchase.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { holder, lead, type TestStore } from '../support/record.ts';
import { aBuyer, seller, spend, takenPurchase } from '../support/topups.ts';

const hour = 3_600_000;

describe('the monthly cap of the automatic top-up', () => {
  let store: TestStore;
  eachWithEmptyRecord((made) => {
    store = made;
  });
  beforeEach(async () => {
    await lead(store, holder);
    // Each test has a month before it in which the 72 hours end.
    store.advance(monthOf(store.clock.now()).end - store.clock.now() + hour);
  });

  const aPaidTopup = async (buyer: Awaited<ReturnType<typeof aBuyer>>) => {
    const purchase = await takenPurchase(store, buyer);
    await endPurchase(store, purchase, { verdict: 'paid', payment: `pi_${purchase.id}`, seller });
    return purchase;
  };
  /** What becomes of the next purchase, three days later in the same month. */
  const next = async (buyer: Awaited<ReturnType<typeof aBuyer>>) => {
    store.advance(72 * hour);
    while (!(await duePurchases(store)).includes(buyer.accountId)) await spend(store, buyer, 1);
    const purchase = await takePurchase(store, buyer.accountId, 60_000);
    return purchase === 'capped' ? purchase : purchase?.price_cents;
  };
  const shown = async (account: string) =>
    spentIn(await listPurchases(store, account), monthOf(store.clock.now()).start).map((sum) => sum.topup_cents);

  it('D82: the monthly cap counts a top-up until it is refunded or disputed, as the page Billing does', async () => {
    for (const [state, outcome, sums] of [
      [null, 'capped', [990]],
      ['refunded', 990, []],
      ['disputed', 990, []],
    ] as const) {
      const buyer = await aBuyer(store, { monthly_cap_cents: '990' });
      await spend(store, buyer, 5);
      const purchase = await aPaidTopup(buyer);
      if (state !== null) await reversePurchase(store, purchase, state, `pi_${purchase.id}`);
      await setTopup(store, buyer.accountId, { enabled: '1' });
      expect([state, await shown(buyer.accountId), await next(buyer)]).to.deep.equal([state, sums, outcome]);
    }
  });

  it('D82: a top-up whose record is damaged stops no further one, and counts in its month as much as the next one costs', async () => {
    for (const [json, cap, outcome] of [
      ['{"state":"pa', '1980', 990],
      ['null', '1979', 'capped'],
    ] as const) {
      const buyer = await aBuyer(store, { monthly_cap_cents: cap });
      await spend(store, buyer, 5);
      const { id } = await aPaidTopup(buyer);
      await store.connection.send(['HSET', keys.bought(buyer.accountId), id, json]);
      expect([await shown(buyer.accountId), await next(buyer)]).to.deep.equal([[], outcome]);
    }
  });

  it('D82: the monthly cap adds up no amounts of different currencies', async () => {
    const buyer = await aBuyer(store, { monthly_cap_cents: '1500' });
    await spend(store, buyer, 5);
    await aPaidTopup(buyer);
    await setTopup(store, buyer.accountId, { currency: 'jpy', price_cents: '1400' });
    expect(await next(buyer)).to.equal(1400);
  });

  it('D82: the monthly cap counts what was paid in its currency although another one was chosen meanwhile', async () => {
    const buyer = await aBuyer(store, { monthly_cap_cents: '1500' });
    await spend(store, buyer, 5);
    await aPaidTopup(buyer);
    await setTopup(store, buyer.accountId, { currency: 'jpy', price_cents: '1400' });
    store.advance(72 * hour);
    while (!(await duePurchases(store)).includes(buyer.accountId)) await spend(store, buyer, 1);
    await aPaidTopup(buyer);
    await setTopup(store, buyer.accountId, { currency: 'eur', price_cents: '990' });
    expect(await next(buyer)).to.equal('capped');
  });
});
