import { expect } from 'chai';
import { changeTopup } from '../../src/billing/change-topup.ts';
import { topupOf } from '../../src/model/topup.ts';
import { keys } from '../../src/store/keys.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { signedInAt } from '../support/browser-session.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';

const offer = { name: 'small', title: 'Small', credits: 50, price_cents: 500, currency: 'usd' };

describe('the checkout', () => {
  let stripe: StripeStandIn;
  let api: TestApi;
  before(async () => {
    stripe = await startStripe();
    const heard = { TRAWL_STRIPE_WEBHOOK_SECRET: 'whsec_test' };
    api = await startApi({ TRAWL_STRIPE_KEY: 'sk_test_1', TRAWL_STRIPE_URL: stripe.url, ...heard });
    await setOffer(api.store, offer);
  });
  after(async () => {
    await api.stop();
    await stripe.stop();
  });

  const signedIn = async (role: 'owner' | 'member') => {
    const { account } = await api.addCaller();
    return { account, browser: await signedInAt(api, account, role) };
  };

  it('leads an owner to the page of the provider, which takes cards, for an offer at its price or to store a card', async () => {
    const { account, browser } = await signedIn('owner');
    expect((await browser.ask('GET', '/api/offers')).json).to.deep.equal({ offers: [offer] });
    const { status, json } = await browser.ask('POST', '/api/checkout', { offer: 'small', price_cents: 1 });
    expect([status, json]).to.deep.equal([200, { url: 'https://checkout.example/pay' }]);
    expect(stripe.visits.at(-1)?.form).to.include({
      ...{ mode: 'payment', cancel_url: `${api.dashboardUrl}/billing`, 'allowed_payment_method_types[0]': 'card' },
      ...{ 'line_items[0][price_data][unit_amount]': '500', 'line_items[0][price_data][currency]': 'usd' },
      ...{ 'payment_intent_data[metadata][trawl_account]': account },
    });
    const { success_url, 'payment_intent_data[metadata][trawl_purchase]': purchase } = stripe.visits.at(-1)!.form;
    expect(`${account}-${new URL(success_url!).searchParams.get('bought')}`).to.equal(purchase);
    expect((await browser.ask('POST', '/api/checkout', {})).status).to.equal(200);
    expect(stripe.visits.at(-1)?.form).to.include({
      ...{
        mode: 'setup',
        success_url: `${api.dashboardUrl}/billing`,
        'allowed_payment_method_types[0]': 'card',
      },
    });
  });

  it('sells nothing that is not offered, and nothing to a member', async () => {
    const { browser } = await signedIn('owner');
    const asked = stripe.visits.length;
    for (const wrong of ['large', null, 5]) {
      expect((await browser.ask('POST', '/api/checkout', { offer: wrong })).status).to.equal(404);
    }
    const member = await signedIn('member');
    expect((await member.browser.ask('POST', '/api/checkout', { offer: 'small' })).status).to.equal(403);
    expect(stripe.visits.length).to.equal(asked);
  });

  it('says so where no provider is configured', async () => {
    const other = await startApi();
    const browser = await signedInAt(other, (await other.addCaller()).account);
    const { status, text } = await browser.ask('POST', '/api/checkout', {});
    await other.stop();
    expect([status, text.includes('No payment provider')]).to.deep.equal([409, true]);
  });

  it('says that the provider opens no page when it refuses the key, and tells the operator why', async () => {
    const { browser } = await signedIn('owner');
    stripe.keys.add('sk_test_2');
    const { status, headers, json } = await browser.ask('POST', '/api/checkout', { offer: 'small' });
    stripe.keys.clear();
    expect([status, headers.get('x-error-code')]).to.deep.equal([500, 'internal_error']);
    expect(json).to.deep.equal({
      error: 'The payment provider opens no page now, and nothing was paid: try again later',
    });
    expect(api.lines.join('\n')).to.include('Invalid API Key provided');
    expect((await browser.ask('POST', '/api/checkout', { offer: 'small' })).status).to.equal(200);
  });

  it('sells nothing while nothing would tell that it was paid', async () => {
    const deaf = await startApi({ TRAWL_STRIPE_KEY: 'sk_test_1', TRAWL_STRIPE_URL: stripe.url });
    try {
      await setOffer(deaf.store, offer);
      const { account } = await deaf.addCaller();
      const browser = await signedInAt(deaf, account);
      const { status, headers } = await browser.ask('POST', '/api/checkout', { offer: 'small' });
      expect([status, headers.get('x-error-code')]).to.deep.equal([409, 'no_provider']);
    } finally {
      await deaf.stop();
    }
  });

  it('lets an owner choose a pack only with its own price, also in two requests at one moment', async () => {
    const large = { ...offer, name: 'large', title: 'Large', credits: 5_000, price_cents: 40_000 };
    await setOffer(api.store, large);
    const { account, browser } = await signedIn('owner');
    const packOf = ({ title, credits: total, price_cents, currency }: typeof offer) => ({
      title,
      total,
      price_cents,
      currency,
    });
    expect((await browser.ask('PUT', '/api/topup', { pack: packOf(offer) })).status).to.equal(200);
    for (let round = 0; round < 20; round++) {
      await browser.ask('PUT', '/api/topup', { pack: packOf(offer) });
      await Promise.all([
        browser.ask('PUT', '/api/topup', { pack: packOf(large) }),
        browser.ask('PUT', '/api/topup', { pack: { price_cents: offer.price_cents } }),
      ]);
      const { pack_total, price_cents } = topupOf(await readTopup(api.store, account));
      expect([`${50} ${500}`, `${5_000} ${40_000}`]).to.include(`${pack_total} ${price_cents}`);
    }
  });

  it('keeps the price that the operator sets while an owner changes the rest', async () => {
    const { account } = await api.addCaller({ quota: 5, paid: true });
    await setTopup(api.store, account, { pack_title: 'Small', price_cents: '500', currency: 'usd' });
    let isSet = false;
    const read: Connection['read'] = async (command) => {
      const reply = await api.store.connection.read(command);
      if (command[0] === 'HGETALL' && command[1] === keys.topup(account) && !isSet) {
        isSet = true;
        await setTopup(api.store, account, { price_cents: '700' });
      }
      return reply;
    };
    const store = { ...api.store, connection: { ...api.store.connection, read } };
    await changeTopup(store, account, { threshold_percent: 20 }, { by: 'owner', hasProvider: true });
    expect(topupOf(await readTopup(api.store, account))).to.include({ price_cents: 700, threshold_percent: 20 });
  });
});
