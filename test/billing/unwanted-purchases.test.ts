import { expect } from 'chai';
import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';
import type { Purchase } from '../../src/model/purchase.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { dropPurchase } from '../../src/store/money/drop-purchase.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { lookAtTopup } from '../../src/store/money/look-at-topup.ts';
import { listPurchases } from '../../src/store/money/read-purchases.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { aPlan, type TestStore } from '../support/record.ts';
import { contentOf } from '../support/script-faults.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, buyDue, eachWithStripe, seller, spend, takenPurchase } from '../support/topups.ts';

type Buyer = Awaited<ReturnType<typeof aBuyer>>;

const [lease, hour] = [90_001, 3_600_000];

describe('a purchase that is wanted no more after its first try', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let parts: PaymentParts;
  let provider: PaymentProvider;
  eachWithStripe((payments) => {
    ({ store, stripe, provider, parts } = payments);
  });

  const buyAll = async (passedMs = 0) => {
    store.advance(passedMs);
    await buyDue(parts, stripe.url);
    return stripe.charges.length;
  };
  const packsOf = async (account: string) => (await readSnapshot(store, account)).balances.packs.length;
  const outcomes = async () => {
    const { values } = await parts.metrics.purchases_total.get();
    const counted = values.filter(({ value }) => value > 0);
    return Object.fromEntries(counted.map(({ labels, value }) => [labels.outcome, value]));
  };
  /** An account with nothing left, and the first try of its purchase with this fault in each of the library's three requests. */
  const aTriedBuyer = async (fault: 'before' | 'after') => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 10);
    stripe.faults.push(fault, fault, fault);
    await buyAll();
    return buyer;
  };

  const changes = {
    'its top-up was disabled': (account: string) => setTopup(store, account, { enabled: '0' }),
    'its account was suspended': (account: string) => setAccount(store, account, { suspended: true }),
    'an invoice of its account is unpaid': (account: string) => setAccount(store, account, { invoice: 'unpaid' }),
    'its account has no plan any more': (account: string) => setAccount(store, account, { plan: null }),
    'its account has a free plan': async (account: string) => {
      await aPlan(store, 'free', { paid: false });
      await setAccount(store, account, { plan: 'free' });
    },
  };
  for (const [what, change] of Object.entries(changes)) {
    it(`topup-disable: a purchase whose first try did not reach Stripe is never charged after ${what}`, async () => {
      const buyer = await aTriedBuyer('before');
      await change(buyer.accountId);
      expect([await buyAll(lease), await buyAll(30 * hour), await packsOf(buyer.accountId)]).to.deep.equal([0, 0, 0]);
      expect(await listPurchases(store, buyer.accountId)).to.deep.equal([]);
      expect(await outcomes()).to.deep.equal({ unknown: 1, dropped: 1 });
      await removeAccount(store, buyer.accountId, buyer.slug);
    });

    it(`a purchase that was charged at its first try brings its pack although ${what} before the answer`, async () => {
      const buyer = await aTriedBuyer('after');
      await change(buyer.accountId);
      expect([await buyAll(lease), await packsOf(buyer.accountId)]).to.deep.equal([1, 1]);
      expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
    });
  }

  const bought: Omit<Purchase, 'account'> = {
    ...{ id: 'visit', kind: 'offer', pack_title: 'Big', pack_total: 10, price_cents: 900, currency: 'eur' },
    ...{ customer: 'c', payment_method: 'm' },
  };
  const grown = {
    'its owner paid for a pack': (account: string) =>
      endPurchase(store, { ...bought, account }, { verdict: 'paid', payment: 'pi_visit', seller }),
    'its account was given credits': (account: string) => grantCredits(store, account, 10),
    'the next billing period of its account began': async () => store.advance(31 * 24 * hour),
    'its account got a larger plan': async (account: string) => {
      await aPlan(store, 'larger', { paid: true, quota: 100 });
      await setAccount(store, account, { plan: 'larger' });
    },
  };
  const topupsOf = async (account: string) =>
    (await listPurchases(store, account)).filter(({ kind }) => kind === 'topup');
  for (const [what, change] of Object.entries(grown)) {
    it(`a purchase is never charged when ${what} before its first try, until a charge asks again`, async () => {
      const buyer = await aBuyer(store);
      await spend(store, buyer, 10);
      await change(buyer.accountId);
      expect([await buyAll(), await topupsOf(buyer.accountId)]).to.deep.equal([0, []]);
      await spend(store, buyer, (await readSnapshot(store, buyer.accountId)).balances.quota > 10 ? 74 : 5);
      expect(await buyAll()).to.equal(1);
      expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
    });

    it(`a purchase whose first try did not reach Stripe is dropped when ${what}`, async () => {
      const { accountId } = await aTriedBuyer('before');
      await change(accountId);
      expect([await buyAll(lease), await buyAll(30 * hour), await topupsOf(accountId)]).to.deep.equal([0, 0, []]);
      expect(await outcomes()).to.deep.equal({ unknown: 1, dropped: 1 });
    });

    it(`a purchase that was charged at its first try brings its pack although ${what}`, async () => {
      const { accountId } = await aTriedBuyer('after');
      await change(accountId);
      expect([await buyAll(lease), (await topupsOf(accountId)).map(({ state }) => state)]).to.deep.equal([1, ['paid']]);
      expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
    });
  }

  it('an account that was suspended during a try that did not reach Stripe buys within an hour after', async () => {
    const { accountId } = await aTriedBuyer('before');
    await setAccount(store, accountId, { suspended: true });
    expect(await buyAll(lease)).to.equal(0);
    await setAccount(store, accountId, { suspended: false });
    store.advance(hour);
    await lookAtTopup(store, accountId);
    expect((await readTopup(store, accountId)).enabled).to.equal('1');
    expect([await buyAll(), await buyAll(), await packsOf(accountId)]).to.deep.equal([1, 1, 1]);
  });

  it('a purchase at a slow bank is waited for although its top-up was disabled meanwhile', async () => {
    const buyer = await aBuyer(store, { payment_method: 'pm_slow_bank' });
    await spend(store, buyer, 10);
    const { payment } = await provider.charge(await takenPurchase(store, buyer));
    await setTopup(store, buyer.accountId, { enabled: '0' });
    expect([await buyAll(lease), await packsOf(buyer.accountId)]).to.deep.equal([0, 0]);
    stripe.finish(payment);
    expect([await buyAll(lease), await packsOf(buyer.accountId)]).to.deep.equal([1, 1]);
  });

  const meanwhile = {
    'its top-up was enabled again': (buyer: Buyer) => setTopup(store, buyer.accountId, { enabled: '1' }),
    'another try of it began': async (buyer: Buyer) => {
      store.advance(lease);
      await takenPurchase(store, buyer);
    },
  };
  for (const [what, change] of Object.entries(meanwhile)) {
    it(`a purchase is not dropped, and nothing changes, when ${what} while Stripe was asked for its payment`, async () => {
      const buyer = await aTriedBuyer('before');
      await setTopup(store, buyer.accountId, { enabled: '0' });
      store.advance(lease);
      const purchase = await takenPurchase(store, buyer);
      expect([purchase.isWanted, await provider.find(purchase)]).to.deep.equal([false, null]);
      await change(buyer);
      const before = await contentOf(store);
      expect(await dropPurchase(store, purchase)).to.equal(false);
      expect(await contentOf(store)).to.deep.equal(before);
    });
  }
});
