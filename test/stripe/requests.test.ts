import { expect } from 'chai';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import type { TakenPurchase } from '../../src/store/money/take-purchase.ts';
import { type StripeJudge, startStripeJudge } from '../support/stripe-judge.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';

const now = Date.UTC(2026, 0, 2);
const purchase: TakenPurchase = {
  ...{ id: 'account-1', account: 'account', kind: 'topup', pack_title: 'Auto', pack_total: 10, price_cents: 990 },
  ...{ currency: 'eur', customer: 'cus_1', payment_method: 'pm_card_visa', since: now, attempt: 1 },
  isWanted: true,
};
const order = {
  ...{ id: 'visit', account: { id: 'account', name: 'Films' }, email: 'ada@example.com' },
  returnUrl: 'https://dashboard.example.com/billing',
  paidUrl: 'https://dashboard.example.com/billing?bought=visit',
};
const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'eur' };

describe('requests to Stripe', () => {
  let stripe: StripeStandIn;
  let judge: StripeJudge;
  before(async () => {
    stripe = await startStripe();
    judge = await startStripeJudge(stripe.url);
  });
  after(async () => {
    await judge?.stop();
    await stripe.stop();
  });

  it('are each allowed by its own OpenAPI document, whatever the provider is asked for', async () => {
    const provider = openStripe({ key: () => 'sk_test_1', url: judge.url, now: () => now });
    const states = [];
    for (const [id, payment_method] of [
      ['paid', 'pm_card_visa'],
      ['slow', 'pm_slow_bank'],
      ['poor', 'pm_card_chargeDeclined'],
      ['gone', 'pm_gone'],
    ] as const)
      states.push((await provider.charge({ ...purchase, id, payment_method })).state);
    expect(states).to.deep.equal(['paid', 'pending', 'declined', 'declined']);
    // The same key with other terms, as after a change between two tries.
    await provider.charge({ ...purchase, id: 'paid', price_cents: 1 });
    const old = await provider.charge({ ...purchase, id: 'paid', since: now - 30 * 3_600_000 });
    expect(old.state).to.equal('paid');
    stripe.cards.set('pm_card', { exp_month: 8, exp_year: 2030 });
    expect(await provider.card('pm_card')).to.include({ expires: Date.UTC(2030, 8, 1) });
    expect(await provider.card('pm_gone')).to.equal(null);
    expect(await provider.purchase('pi_unknown')).to.equal(null);
    await provider.checkout({ ...order, customer: null, offer });
    await provider.checkout({ ...order, customer: 'cus_1', offer: null });
    expect(judge.verdicts.filter(({ status }) => status !== 200)).to.deep.equal([]);
    const asked = new Set(judge.verdicts.map(({ request }) => request));
    expect([...asked].sort()).to.deep.equal([
      'GET /v1/payment_intents',
      'GET /v1/payment_intents/ID',
      'GET /v1/payment_methods/ID',
      'POST /v1/checkout/sessions',
      'POST /v1/customers',
      'POST /v1/payment_intents',
    ]);
  });

  it('would be refused with a parameter that Stripe does not know', async () => {
    const headers = { authorization: 'Bearer sk_test_1', 'content-type': 'application/x-www-form-urlencoded' };
    const body = 'amount=990&currency=eur&of_session=true';
    await fetch(`${judge.url}/v1/payment_intents`, { method: 'POST', headers, body });
    const { status, text } = judge.verdicts.at(-1)!;
    expect(status).to.equal(400);
    expect(text).to.include('additional properties are not allowed');
  });
});
