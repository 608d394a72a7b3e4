import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { applyPayment, type PaymentParts } from '../../src/billing/apply-payment.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { readPurchase } from '../../src/store/money/read-purchases.ts';
import { readTopup } from '../../src/store/money/set-topup.ts';
import type { TakenPurchase } from '../../src/store/money/take-purchase.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithMailedRecord, type MailSender } from '../support/mail-sender.ts';
import type { TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { aBuyer, seller, spend, takenPurchase } from '../support/topups.ts';

describe('disputes', () => {
  let store: TestStore;
  let sender: MailSender;
  let stripe: StripeStandIn;
  let parts: PaymentParts;
  eachWithMailedRecord((made, given) => {
    [store, sender] = [made, given];
  });
  beforeEach(async () => {
    stripe = await startStripe();
    parts = { store, provider: provider(), seller, metrics: makeMetrics(), log: aLog().log };
    await invited(store, '', 'operator', 'op@example.com');
  });
  afterEach(() => stripe.stop());

  const provider = () => openStripe({ key: () => 'sk_test_1', url: stripe.url, now: store.clock.now });
  /** A purchase that the provider was paid for, and the record does not know of. */
  const aPaidPurchase = async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    const taken = await takenPurchase(store, buyer);
    const { payment } = await provider().charge(taken);
    return { account: buyer.accountId, purchase: termsOf(taken), payment };
  };
  const termsOf = ({ since: _, attempt: __, isWanted: ___, ...purchase }: TakenPurchase) => purchase;
  const packsOf = async (account: string) => (await readSnapshot(store, account)).balances.packs.length;
  const mails = async () => {
    await sender.send();
    return sender.box.mails
      .splice(0)
      .filter(({ to }) => to === 'op@example.com')
      .map(({ mail }) => mail.subject);
  };

  it('takes back the rest of a refunded pack whose record is damaged', async () => {
    const { account, purchase, payment } = await aPaidPurchase();
    await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_paid');
    await store.connection.send(['HSET', keys.packs(account), purchase.id, '{"title":"cu']);
    await applyPayment(parts, { kind: 'refunded', purchase, payment }, 'evt_refund');
    expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
    expect(await store.connection.read(['HGET', keys.account(account), 'packs_left'])).to.equal('0');
  });

  for (const [used, left, shown] of [
    [null, '3', { total: 6, used: 6 }],
    ['1', '3', { total: 6, used: 6 }],
    ['12', '7', { total: 10, used: 12 }],
  ] as const) {
    it(`takes back what admission counts, and no more, of a refunded pack whose count of used credits is damaged (${used})`, async () => {
      const { account, purchase, payment } = await aPaidPurchase();
      await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_paid');
      await store.connection.send(['HDEL', keys.packs(account), `used:${purchase.id}`]);
      if (used !== null) await store.connection.send(['HSET', keys.packs(account), `used:${purchase.id}`, used]);
      await addPack(store, account, { id: 'beside', title: 'Pack', total: 3, purchased_at: 0 });
      await store.connection.send(['HSET', keys.account(account), 'packs_left', '7']);
      await applyPayment(parts, { kind: 'refunded', purchase, payment }, 'evt_refund');
      expect(await store.connection.read(['HGET', keys.account(account), 'packs_left'])).to.equal(left);
      const { packs } = (await readSnapshot(store, account)).balances;
      expect(packs.find(({ id }) => id === purchase.id)).to.include(shown);
      expect(packs.find(({ id }) => id === 'beside')).to.include({ total: 3, used: 0 });
    });
  }

  it('takes back the rest of a refunded pack whose purchase is damaged', async () => {
    const { account, purchase, payment } = await aPaidPurchase();
    await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_paid');
    await store.connection.send(['HSET', keys.bought(account), purchase.id, '{"state":"pa']);
    await applyPayment(parts, { kind: 'refunded', purchase, payment }, 'evt_refund');
    expect(await readPurchase(store, account, purchase.id)).to.deep.include({
      ...purchase,
      payment,
      state: 'refunded',
    });
    expect(await store.connection.read(['HGET', keys.account(account), 'packs_left'])).to.equal('0');
  });

  for (const state of ['refunded', 'disputed'] as const) {
    it(`takes back the rest of a pack whose purchase lacks its payment, once it is ${state}`, async () => {
      const { account, purchase, payment } = await aPaidPurchase();
      await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_paid');
      const { payment: _, ...damaged } = (await readPurchase(store, account, purchase.id))!;
      await store.connection.send(['HSET', keys.bought(account), purchase.id, JSON.stringify(damaged)]);
      await applyPayment(parts, { kind: state, purchase, payment }, 'evt_back');
      expect(await readPurchase(store, account, purchase.id)).to.deep.include({ ...damaged, payment, state });
      expect(await store.connection.read(['HGET', keys.account(account), 'packs_left'])).to.equal('0');
    });
  }

  for (const [before, packs] of [
    ['paid', [10]],
    ['refunded', []],
    ['declined', [10]],
  ] as const) {
    it(`a payment that is told again of a purchase that was ${before} and is damaged leaves ${packs.length} packs`, async () => {
      const { account, purchase, payment } = await aPaidPurchase();
      const declined = { kind: 'declined', purchase, payment: '', reason: '' } as const;
      await applyPayment(
        parts,
        before === 'declined' ? declined : { kind: before, purchase, payment, at: 1_000 },
        'evt_1',
      );
      const asked = (await readTopup(store, account)).last_purchase_at;
      await store.connection.send(['HSET', keys.bought(account), purchase.id, '{"state":"pa']);
      store.advance(1_000);
      await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_2');
      expect((await readSnapshot(store, account)).balances.packs.map(({ total }) => total)).to.deep.equal(packs);
      expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
      if (before !== 'declined') expect((await readTopup(store, account)).last_purchase_at).to.equal(asked);
    });
  }

  it('a dispute that is reported before its payment keeps the pack away, disables the top-up and mails the operators', async () => {
    const { account, purchase, payment } = await aPaidPurchase();
    await applyPayment(parts, { kind: 'disputed', payment }, 'evt_dispute');
    await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_paid');
    expect(await readPurchase(store, account, purchase.id)).to.deep.include({
      ...purchase,
      payment,
      state: 'disputed',
    });
    expect([await packsOf(account), (await readTopup(store, account)).enabled]).to.deep.equal([0, '0']);
    expect((await mails()).join()).to.match(/was disputed: EUR 9.90$/);
    expect((await verifyLedger(store, account)).problems).to.deep.equal([]);
  });

  it('of a payment whose refund was reported before it disable the top-up and mail the operators', async () => {
    const { account, purchase, payment } = await aPaidPurchase();
    await applyPayment(parts, { kind: 'refunded', purchase, payment }, 'evt_refund');
    await applyPayment(parts, { kind: 'paid', purchase, payment, at: 1_000 }, 'evt_paid');
    await mails();
    await stripe.stop();
    await applyPayment(parts, { kind: 'disputed', payment }, 'evt_dispute');
    expect(await readPurchase(store, account, purchase.id)).to.include({ state: 'disputed' });
    expect([await packsOf(account), (await readTopup(store, account)).enabled]).to.deep.equal([0, '0']);
    expect((await mails()).join()).to.match(/was disputed: EUR 9.90$/);
  });

  it('of payments that are not for a purchase of ours change nothing', async () => {
    const before = await store.connection.send(['KEYS', '*']);
    for (const payment of ['pi_unknown', '']) await applyPayment(parts, { kind: 'disputed', payment }, 'evt_1');
    const body = 'amount=1&currency=eur&payment_method=pm_card_visa&metadata[order]=7';
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    await fetch(`${stripe.url}/v1/payment_intents`, { method: 'POST', body, headers });
    await applyPayment(parts, { kind: 'disputed', payment: stripe.charges[0]!.id }, 'evt_2');
    expect(await store.connection.send(['KEYS', '*'])).to.deep.equal(before);
  });

  it('are refused, so that the provider reports them again, while it cannot tell what was paid for', async () => {
    const { account, purchase, payment } = await aPaidPurchase();
    const event = () => applyPayment(parts, { kind: 'disputed', payment }, 'evt_1').catch((error: Error) => error);
    await stripe.stop();
    expect(await event()).to.be.instanceOf(Error);
    expect(await readPurchase(store, account, purchase.id)).to.equal(null);
    expect(await store.connection.send(['EXISTS', keys.paymentEvents])).to.equal(0);
  });
});
