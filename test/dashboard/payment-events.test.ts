import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import Stripe from 'stripe';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { readPurchase } from '../../src/store/money/read-purchases.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { signedInAt } from '../support/browser-session.ts';
import { paidEvent, sendEvent } from '../support/paid-event.ts';
import { until } from '../support/until.ts';

const secret = 'whsec_test';
const key = 'sk_test_1';

describe('events of the payment provider', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi({ TRAWL_STRIPE_KEY: key, TRAWL_STRIPE_WEBHOOK_SECRET: secret });
  });
  after(() => api.stop());

  const send = (event: object, sign = secret) => sendEvent(api.dashboardUrl, sign, event);
  const packs = async (accountId: string) => (await readSnapshot(api.store, accountId)).balances.packs.length;

  it('deliver a pack once, however often and in whatever number they come', async () => {
    const { account } = await api.addCaller();
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(paidEvent(account, 'one'))));
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200]);
    expect((await send(paidEvent(account, 'one'))).status).to.equal(200);
    expect(await packs(account)).to.equal(1);
  });

  it('are known by their ids to another process, whatever they say', async () => {
    const { account } = await api.addCaller();
    const other = await startApi({ TRAWL_STRIPE_KEY: key, TRAWL_STRIPE_WEBHOOK_SECRET: secret }, (parts) => {
      return { ...parts, store: api.store };
    });
    try {
      const later = { ...paidEvent(account, 'second'), id: 'evt_first' };
      for (const [url, event] of [
        [api.dashboardUrl, paidEvent(account, 'first')],
        [other.dashboardUrl, later],
      ] as const) {
        expect((await sendEvent(url, secret, event)).status).to.equal(200);
      }
      expect(await packs(account)).to.equal(1);
    } finally {
      await other.stop();
    }
  });

  it('a bank that only asks about a payment takes no credit of its pack, until it withdraws the money', async () => {
    const { account } = await api.addCaller();
    await send(paidEvent(account, 'asked'));
    const dispute = { object: 'dispute', payment_intent: 'pi_asked' };
    const seen = [];
    for (const [type, status] of [
      ['created', 'warning_needs_response'],
      ['funds_withdrawn', 'needs_response'],
      ['created', 'needs_response'],
    ]) {
      const data = { object: { ...dispute, status } };
      const event = { ...paidEvent(account, `${type} ${status}`), type: `charge.dispute.${type}`, data };
      expect((await send(event)).status).to.equal(200);
      const [pack] = (await readSnapshot(api.store, account)).balances.packs;
      seen.push([pack?.total, (await readPurchase(api.store, account, 'asked'))?.state]);
    }
    expect(seen).to.deep.equal([
      [50, 'paid'],
      [0, 'disputed'],
      [0, 'disputed'],
    ]);
  });

  it('give the account an invoice as PDF, and another account none', async () => {
    const { account } = await api.addCaller();
    await send(paidEvent(account, 'invoiced'));
    const viewer = await signedInAt(api, account, 'viewer');
    const [{ id, invoice }] = (await viewer.ask('GET', '/api/billing')).json.purchases;
    const path = `/api/purchases/${id}/invoice.pdf`;
    const { status, headers, text } = await viewer.ask('GET', path);
    expect([status, headers.get('content-type'), text.slice(0, 5)]).to.deep.equal([200, 'application/pdf', '%PDF-']);
    expect(headers.get('content-disposition')).to.equal(`attachment; filename="${invoice}.pdf"`);
    const other = await signedInAt(api, (await api.addCaller()).account, 'viewer');
    for (const wrong of [path, '/api/purchases/none/invoice.pdf']) {
      expect((await other.ask('GET', wrong)).status, wrong).to.equal(404);
    }
  });

  it('events that the provider did not sign change nothing', async () => {
    const { account } = await api.addCaller();
    expect((await send(paidEvent(account, 'forged'), 'whsec_other')).status).to.equal(400);
    const unsigned = await fetch(`${api.dashboardUrl}/stripe/webhook`, { method: 'POST', body: '{}' });
    expect(unsigned.status).to.equal(400);
    expect(await packs(account)).to.equal(0);
  });

  it('events that are compressed are refused, however well signed, because they could unpack to a thousand times as much', async () => {
    const { account } = await api.addCaller();
    const payload = JSON.stringify(paidEvent(account, 'packed'));
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret });
    const headers = { 'stripe-signature': signature, 'content-encoding': 'gzip' };
    const body = gzipSync(payload);
    const answer = await fetch(`${api.dashboardUrl}/stripe/webhook`, { method: 'POST', headers, body });
    expect(answer.status).to.equal(400);
    expect(await packs(account)).to.equal(0);
  });

  it('are taken while strangers hold back more bodies than are read at once, of which the oldest give way', async () => {
    const { account } = await api.addCaller();
    // A body that is late is told so; one that gives way hears nothing.
    const answered = new Set<Socket>();
    const sockets = Array.from({ length: 90 }, () => {
      const socket = connect(api.dashboardPort, '127.0.0.1').on('error', () => {});
      return socket.on('data', () => answered.add(socket));
    });
    const gaveWay = () => sockets.filter((one) => one.destroyed && !answered.has(one)).length;
    try {
      for (const socket of sockets) {
        socket.write('POST /stripe/webhook HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{');
      }
      await until(() => gaveWay() === 26, 10, 'the oldest give way');
      expect((await send(paidEvent(account, 'late'))).status).to.equal(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    expect(await packs(account)).to.equal(1);
  });

  it('are taken where the secret alone is configured, in both modes, and a pack cannot be bought', async () => {
    const other = await startApi({ TRAWL_STRIPE_WEBHOOK_SECRET: secret });
    try {
      const { account } = await other.addCaller();
      for (const event of [paidEvent(account, 'test'), { ...paidEvent(account, 'live'), livemode: true }]) {
        expect((await sendEvent(other.dashboardUrl, secret, event)).status).to.equal(200);
      }
      expect((await sendEvent(other.dashboardUrl, 'whsec_other', paidEvent(account, 'forged'))).status).to.equal(400);
      expect((await readSnapshot(other.store, account)).balances.packs).to.have.length(2);
      const browser = await signedInAt(other, account, 'owner');
      expect((await browser.ask('POST', '/api/checkout', {})).status).to.equal(409);
    } finally {
      await other.stop();
    }
  });

  it('are refused with the reason, and logged, when they are signed and have no object, as thin ones', async () => {
    const { id, object, type, created } = { ...paidEvent('a', 'thin') } as Record<string, unknown>;
    const thin = { id, object: 'v2.core.event', type: `v1.${type}`, created: '2026-01-01T00:00:00Z' };
    const reason = 'the event has no data.object: the endpoint must get snapshot payloads, not thin ones';
    for (const event of [thin, { id, object, type, created }, { id, object, type, created, data: {} }, [], null]) {
      const logged = api.lines.length;
      const answer = await send(event as object);
      expect([answer.status, await answer.json()], JSON.stringify(event)).to.deep.equal([
        400,
        { error: `Bad Request: ${reason}` },
      ]);
      expect(api.lines.slice(logged).filter((line) => line.includes(reason))).to.have.length(1);
    }
  });

  for (const type of ['payment_intent.succeeded', 'payment_intent.payment_failed', 'charge.refunded']) {
    it(`are none of ours when the object of a ${type} has no metadata`, async () => {
      expect((await send({ ...paidEvent('a', type), type, data: { object: { id: 'a' } } })).status).to.equal(200);
    });
  }

  it('without the member livemode are those of the test mode', async () => {
    const { account } = await api.addCaller();
    const { livemode: _, ...bare } = paidEvent(account, 'bare') as { livemode: boolean };
    expect((await send(bare)).status).to.equal(200);
    expect(await packs(account)).to.equal(1);
  });

  it('are not taken where no secret is configured', async () => {
    const other = await startApi();
    const answer = await fetch(`${other.dashboardUrl}/stripe/webhook`, { method: 'POST', body: '{}' });
    await other.stop();
    expect(answer.status).to.equal(404);
  });
});
