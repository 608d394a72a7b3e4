import { expect } from 'chai';
import Stripe from 'stripe';
import { applyPayment, type PaymentParts } from '../../src/billing/apply-payment.ts';
import type { PaymentProvider } from '../../src/billing/payment-provider.ts';
import { readStripeEvents } from '../../src/billing/stripe-provider.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { listPurchases, readPurchase } from '../../src/store/money/read-purchases.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import type { TestStore } from '../support/record.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, buyDue, eachWithStripe, spend, takenPurchase } from '../support/topups.ts';

const secret = 'whsec_test';
const signing = new Stripe('sk_test_1');

describe('payments', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let parts: PaymentParts;
  let provider: PaymentProvider;
  eachWithStripe((payments) => {
    ({ store, stripe, provider, parts } = payments);
  });

  const packsOf = async (account: string) => (await readSnapshot(store, account)).balances.packs.length;
  const invoices = async () => Number(await store.connection.send(['LLEN', keys.invoices]));
  const buyAll = () => buyDue(parts, stripe.url);
  let created = 1_800_000_000;
  let sent = 0;
  const signed = (
    type: string,
    object: object,
    { at = ++created, signature }: { at?: number; signature?: string } = {},
  ) => {
    const event = {
      // Each is one of its own: what protects here is the state of the record, not the id.
      ...{ id: `evt_${++sent}`, object: 'event', api_version: Stripe.API_VERSION, created: at, livemode: false },
      ...{ type, data: { object } },
    };
    const payload = JSON.stringify(event);
    const header = signature ?? signing.webhooks.generateTestHeaderString({ payload, secret });
    const readEvent = readStripeEvents({ key: () => 'sk_test_1', secret: () => secret });
    const news = readEvent(Buffer.from(payload), header);
    if (news === 'no_object') throw new Error('the event has no object');
    return news;
  };
  const hear = async (type: string, object: object, at?: number) => {
    const event = signed(type, object, at === undefined ? {} : { at });
    if (event !== null) await applyPayment(parts, event.news, event.id);
    return event?.news.kind ?? null;
  };

  it('topup-buy: charge the stored method while its owner is away, add the pack and number the invoice', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    await buyAll();
    expect(stripe.charges).to.have.length(1);
    expect(stripe.charges[0]).to.include({ amount: 990, currency: 'eur', payment_method: 'pm_card_visa' });
    const id = stripe.asked[0]!;
    expect(await readPurchase(store, buyer.accountId, id)).to.include({ state: 'paid', invoice: 1, buyer: buyer.slug });
    expect(await packsOf(buyer.accountId)).to.equal(1);
    const { values } = await parts.metrics.purchases_total.get();
    const counted = values.filter(({ value }) => value > 0);
    expect(counted.map(({ labels, value }) => [labels.outcome, value])).to.deep.equal([['paid', 1]]);
  });

  it('are made once although answers are lost, servers fail and the purchase is asked for again', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    stripe.faults.push('before', 500, 'after', 'after', 'after', 'after');
    for (let n = 0; (await packsOf(buyer.accountId)) === 0 && n < 9; n++) {
      await buyAll();
      store.advance(90_001);
    }
    expect([stripe.charges.length, new Set(stripe.asked).size, await invoices()]).to.deep.equal([1, 1, 1]);
  });

  it('are not declined, and are asked for again, when Stripe refuses a parameter of ours', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    for (const fault of ['unknown parameter', 'parameter of the past'] as const) {
      stripe.faults.push(fault);
      await buyAll();
      expect((await readTopup(store, buyer.accountId)).enabled).to.equal('1');
      store.advance(90_001);
    }
    await buyAll();
    expect([stripe.charges.length, new Set(stripe.asked).size, await packsOf(buyer.accountId)]).to.eql([1, 1, 1]);
  });

  it('are looked up when the provider has forgotten the idempotency key of a lost answer', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    stripe.faults.push('after', 'after', 'after');
    await buyAll();
    stripe.forgetKeys();
    store.advance(26 * 3_600_000);
    await buyAll();
    expect([stripe.charges.length, await packsOf(buyer.accountId)]).to.deep.equal([1, 1]);
  });

  it('are looked up at the first try, too, when a restored record asks long after the charge', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    const first = await takenPurchase(store, buyer, 0);
    const paid = await provider.charge(first);
    stripe.forgetKeys();
    store.advance(26 * 3_600_000);
    expect([first.attempt, await provider.charge(first)]).to.deep.equal([1, paid]);
    expect(stripe.charges).to.have.length(1);
  });

  it('are looked up although the clock of Redis was ahead when they were asked for', async () => {
    const buyer = await aBuyer(store);
    const ahead = 48 * 3_600_000;
    store.advance(ahead);
    await spend(store, buyer, 5);
    stripe.faults.push('after', 'after', 'after');
    await buyAll();
    stripe.forgetKeys();
    store.advance(-ahead);
    await buyAll();
    expect([stripe.charges.length, await packsOf(buyer.accountId)]).to.deep.equal([1, 1]);
  });

  it('wait for a bank that is slow, and ask under the same id', async () => {
    const buyer = await aBuyer(store, { payment_method: 'pm_slow_bank' });
    await spend(store, buyer, 5);
    const first = await provider.charge(await takenPurchase(store, buyer, 0));
    expect([first.state, await packsOf(buyer.accountId)]).to.deep.equal(['pending', 0]);
    stripe.finish(first.payment);
    store.advance(1);
    await buyAll();
    expect([stripe.charges.length, await packsOf(buyer.accountId)]).to.deep.equal([1, 1]);
  });

  for (const method of ['pm_card_chargeDeclined', 'pm_card_authenticationRequired', 'pm_gone']) {
    it(`topup-fail: that are declined (${method}) disable the top-up and add nothing`, async () => {
      const buyer = await aBuyer(store, { payment_method: method });
      await spend(store, buyer, 6);
      await buyAll();
      expect((await readTopup(store, buyer.accountId)).enabled).to.equal('0');
      expect([stripe.charges.length, await packsOf(buyer.accountId), await invoices()]).to.deep.equal([0, 0, 0]);
      expect(await readPurchase(store, buyer.accountId, stripe.asked[0]!)).to.include({ state: 'declined' });
    });
  }

  it('change nothing twice when events come twice, and in any order with the answer', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    const { payment } = await provider.charge(await takenPurchase(store, buyer));
    const [intent] = stripe.charges;
    const succeeded = () => hear('payment_intent.succeeded', intent!);
    const failed = () => hear('payment_intent.payment_failed', { ...intent, status: 'requires_payment_method' });
    expect([await succeeded(), await failed(), await succeeded()]).to.deep.equal(['paid', 'declined', 'paid']);
    store.advance(90_001);
    await buyAll();
    expect([await packsOf(buyer.accountId), await invoices()]).to.deep.equal([1, 1]);
    expect((await readTopup(store, buyer.accountId)).enabled).to.equal('1');
    const { metadata, amount, currency, customer } = intent!;
    const charge = { metadata, amount, currency, customer, payment_intent: payment };
    expect(await hear('charge.refunded', { ...charge, amount_refunded: 100 })).to.equal(null);
    for (const _ of [1, 2]) await hear('charge.refunded', { ...charge, amount_refunded: amount });
    await hear('charge.dispute.created', { payment_intent: payment });
    await succeeded();
    const { packs } = (await readSnapshot(store, buyer.accountId)).balances;
    expect(packs.map(({ total }) => total)).to.deep.equal([0]);
    const { values } = await parts.metrics.lapses_total.get();
    expect(values.map(({ labels, value }) => [labels.balance, value])).to.deep.equal([['packs', 10]]);
    expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
  });

  it('add nothing when the refund is heard of before the payment', async () => {
    const buyer = await aBuyer(store);
    await spend(store, buyer, 5);
    await provider.charge(await takenPurchase(store, buyer));
    const { id, metadata, amount, currency, customer } = stripe.charges[0]!;
    await hear('charge.refunded', {
      metadata,
      amount,
      amount_refunded: amount,
      currency,
      customer,
      payment_intent: id,
    });
    await hear('payment_intent.succeeded', stripe.charges[0]!);
    store.advance(90_001);
    await buyAll();
    expect([await packsOf(buyer.accountId), await invoices()]).to.deep.equal([0, 0]);
    // The dashboard shows when it ended.
    expect((await listPurchases(store, buyer.accountId)).every(({ ended_at }) => ended_at > 0)).to.equal(true);
    // It was charged, so the 72 hours began.
    await spend(store, buyer, 1);
    await buyAll();
    expect(stripe.charges.length).to.equal(1);
  });

  it('of an owner at the checkout: bring the pack and an invoice, and store the card for top-ups; nothing without the event', async () => {
    const buyer = await aBuyer(store, { customer: '', payment_method: '' });
    const [id, account] = ['visit-1', { id: buyer.accountId, name: buyer.slug }];
    const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };
    const order = {
      id,
      account,
      email: 'ada@example.com',
      customer: null,
      offer,
      currency: 'eur',
      returnUrl: 'https://t.example',
      paidUrl: 'https://t.example/?bought=visit-1',
    };
    expect(await provider.checkout(order)).to.equal('https://checkout.example/pay');
    const [customer, session] = stripe.visits;
    const { form } = session!;
    expect(form).to.include({
      mode: 'payment',
      customer: customer!.id,
      'line_items[0][price_data][unit_amount]': '500',
    });
    expect(await packsOf(buyer.accountId)).to.equal(0);
    const named = Object.entries(form).map(([name, value]) => [
      /^payment_intent_data\[metadata]\[(.*)]$/.exec(name)?.[1],
      value,
    ]);
    const metadata = Object.fromEntries(named.filter(([name]) => name !== undefined));
    const intent = {
      id: 'pi_v',
      amount: 500,
      currency: 'eur',
      metadata,
      customer: customer!.id,
      payment_method: 'pm_v',
    };
    expect(await hear('payment_intent.payment_failed', intent)).to.equal(null);
    for (const _ of [1, 2]) await hear('payment_intent.succeeded', intent);
    expect(await readPurchase(store, buyer.accountId, id)).to.include({ kind: 'offer', state: 'paid', invoice: 1 });
    expect([await packsOf(buyer.accountId), await invoices()]).to.deep.equal([1, 1]);
    const topup = () => readTopup(store, buyer.accountId);
    expect(await topup()).to.include({ customer: customer!.id, payment_method: 'pm_v' });
    expect((await topup()).last_purchase_at).to.equal(undefined);
    await provider.checkout({ ...order, id: 'visit-2', customer: customer!.id, offer: null });
    expect(stripe.visits.at(-1)?.form).to.include({ mode: 'setup', customer: customer!.id });
    const setup = { metadata: { trawl_account: buyer.accountId }, customer: customer!.id, payment_method: 'pm_w' };
    expect(await hear('setup_intent.succeeded', setup)).to.equal('stored');
    expect(await topup()).to.include({ payment_method: 'pm_w' });
    const stored = created;
    await hear('setup_intent.succeeded', { ...setup, payment_method: 'pm_x' });
    for (const at of [stored, stored - 1]) await hear('setup_intent.succeeded', setup, at);
    expect(await topup(), 'an event that comes again, and one that comes late').to.include({ payment_method: 'pm_x' });
    await hear('setup_intent.succeeded', { ...setup, payment_method: 'pm_y' }, created);
    expect(await topup(), 'another card of the same second').to.include({ payment_method: 'pm_x' });
    await setTopup(store, buyer.accountId, { payment_method: '' });
    await hear('setup_intent.succeeded', { ...setup, payment_method: 'pm_x' }, created);
    expect(await topup(), 'one that comes again after the card was removed').to.include({ payment_method: '' });
  });

  it('charge the card that was stored on purpose, also when its event comes after that of a later purchase', async () => {
    const { accountId } = await aBuyer(store, { customer: '', payment_method: '' });
    const [storedAt, boughtAt] = [++created, ++created];
    const metadata = {
      trawl_account: accountId,
      trawl_purchase: 'v',
      trawl_kind: 'offer',
      pack_title: 'S',
      pack_total: '5',
    };
    const bought = {
      ...{ id: 'pi_a', amount: 500, currency: 'eur', metadata },
      customer: 'cus_1',
      payment_method: 'pm_a',
    };
    const setup = { metadata: { trawl_account: accountId }, customer: 'cus_1', payment_method: 'pm_b' };
    const buy = () => hear('payment_intent.succeeded', bought, boughtAt);
    const method = async () => (await readTopup(store, accountId)).payment_method;
    await buy();
    expect(await method()).to.equal('pm_a');
    await hear('setup_intent.succeeded', setup, storedAt);
    await buy();
    expect(await method()).to.equal('pm_b');
    await setTopup(store, accountId, { payment_method: '' });
    for (const again of [buy, () => hear('setup_intent.succeeded', setup, storedAt)]) await again();
    expect(await method(), 'events that come again after the card was removed').to.equal('');
  });

  it('believe no event that is forged, too old or of others', async () => {
    const payload = '{"id":"evt_1"}';
    const old = { payload, secret, timestamp: Math.floor(Date.now() / 1000) - 600 };
    const headers = ['', 't=1,v1=00', signing.webhooks.generateTestHeaderString({ payload, secret: 'other' })];
    for (const header of [...headers, signing.webhooks.generateTestHeaderString(old)])
      expect(() => signed('payment_intent.succeeded', {}, { signature: header })).to.throw('not signed');
    const others = { id: 'pi_x', amount: 1, currency: 'eur', metadata: {}, customer: null, payment_method: null };
    expect(await hear('payment_intent.succeeded', others)).to.equal(null);
    expect(await hear('charge.dispute.created', { payment_intent: 'pi_x' })).to.equal('disputed');
  });
});
