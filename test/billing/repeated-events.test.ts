import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { applyPayment, type PaymentParts } from '../../src/billing/apply-payment.ts';
import type { PaymentNews } from '../../src/billing/payment-provider.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import type { Purchase } from '../../src/model/purchase.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { readPurchase } from '../../src/store/money/read-purchases.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, storeOf, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { seller } from '../support/topups.ts';

const day = 86_400_000;

describe('events of the payment provider, by their ids,', () => {
  let store: TestStore;
  let accountId: string;
  eachWithEmptyRecord((made) => {
    store = made;
  });
  beforeEach(async () => {
    ({ accountId } = await anAccount(store, { quota: 10, paid: true }));
  });

  // The record knows every payment that is disputed here, so the provider is never asked.
  const provider = openStripe({ key: () => 'sk_test_1', url: 'http://127.0.0.1:1', now: () => store.clock.now() });
  const partsOf = (of: TestStore): PaymentParts => ({
    ...{ store: of, provider, seller, metrics: makeMetrics(), log: aLog().log },
  });
  const apply = ({ eventId = '', ...news }: PaymentNews & { eventId?: string }, of = store) =>
    applyPayment(partsOf(of), news as PaymentNews, eventId);
  const pack = (id: string, kind: Purchase['kind'] = 'offer'): Purchase => ({
    ...{ id, account: accountId, kind, pack_title: 'Small', pack_total: 50, price_cents: 500, currency: 'eur' },
    ...{ customer: 'cus_1', payment_method: 'pm_1' },
  });
  const paid = (eventId: string, purchase: Purchase) =>
    ({ kind: 'paid', eventId, purchase, payment: `pi_${purchase.id}`, at: 1_000 }) as const;
  const stored = (eventId: string, payment_method: string, at: number) =>
    ({ kind: 'stored', eventId, account: accountId, customer: 'cus_1', payment_method, at }) as const;
  const packs = async () => (await readSnapshot(store, accountId)).balances.packs.map(({ total }) => total);
  const card = async () => (await readTopup(store, accountId)).payment_method;
  const noted = async () =>
    ((await store.connection.send(['ZRANGE', keys.paymentEvents, '0', '-1'])) as string[]).sort();

  it('add a pack once when one event comes ten times at once to two processes', async () => {
    const other = storeOf(store.connection);
    await Promise.all(Array.from({ length: 10 }, (_, n) => apply(paid('evt_1', pack('p')), n % 2 ? other : store)));
    expect([await packs(), await card(), await noted()]).to.deep.equal([[50], 'pm_1', ['evt_1']]);
    expect(Number(await store.connection.send(['LLEN', keys.invoices]))).to.equal(1);
    expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
  });

  it('change nothing under an id that was carried out, whatever they say and whoever asks after a restart', async () => {
    await apply(stored('evt_card', 'pm_1', 1_000));
    await apply(paid('evt_paid', pack('p')));
    const restarted = storeOf(store.connection);
    await apply(stored('evt_card', 'pm_2', 2_000), restarted);
    await apply(paid('evt_paid', pack('q')), restarted);
    await apply({ kind: 'refunded', eventId: 'evt_paid', purchase: pack('p'), payment: 'pi_p' }, restarted);
    expect([await card(), await packs()]).to.deep.equal(['pm_1', [50]]);
    expect(await readPurchase(store, accountId, 'q')).to.equal(null);
    const declined = { kind: 'declined', purchase: pack('t', 'topup'), payment: 'pi_t', reason: 'No money' } as const;
    await apply({ ...declined, eventId: 'evt_declined' });
    await apply(paid('evt_declined', pack('t', 'topup')), restarted);
    expect(await packs()).to.deep.equal([50]);
    await apply(stored('evt_other', 'pm_2', 2_000), restarted);
    expect(await card()).to.equal('pm_2');
  });

  it('come in the wrong order and twice, and leave the same balances', async () => {
    const refund = { kind: 'refunded', eventId: 'evt_2', purchase: pack('p'), payment: 'pi_p' } as const;
    const dispute = { kind: 'disputed', eventId: 'evt_3', payment: 'pi_q' } as const;
    const events = [refund, paid('evt_1', pack('p')), paid('evt_4', pack('q')), dispute];
    for (const event of [...events, ...events.toReversed()]) await apply(event);
    expect(await packs()).to.deep.equal([0]);
    expect(await readPurchase(store, accountId, 'p')).to.include({ state: 'refunded' });
    expect(await readPurchase(store, accountId, 'q')).to.include({ state: 'disputed' });
    expect(await noted()).to.deep.equal(['evt_1', 'evt_2', 'evt_3', 'evt_4']);
    expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
  });

  it('are carried out to their end when the process died between the pack and its card', async () => {
    const { payment } = paid('', pack('p'));
    expect(await endPurchase(store, pack('p'), { verdict: 'paid', payment, seller }, 'evt_1')).to.equal('paid');
    expect([await card(), await noted()]).to.deep.equal([undefined, []]);
    for (const _ of [1, 2]) await apply(paid('evt_1', pack('p')));
    expect([await packs(), await card(), await noted()]).to.deep.equal([[50], 'pm_1', ['evt_1']]);
    await setTopup(store, accountId, { payment_method: '' });
    await apply(paid('evt_1', pack('p')));
    expect(await card()).to.equal('');
  });

  it('are remembered for 30 days, and an answer of the provider leaves none', async () => {
    for (let n = 0; n < 5; n++) await apply(stored(`evt_${n}`, 'pm_1', 1_000 + n));
    store.advance(29 * day);
    await apply(stored('evt_late', 'pm_2', 2_000));
    expect(await noted()).to.have.length(6);
    store.advance(2 * day);
    const { eventId: _, ...answer } = paid('', pack('p', 'topup'));
    await apply(answer);
    expect(await noted()).to.have.length(6);
    await apply(stored('evt_last', 'pm_3', 3_000));
    expect(await noted()).to.deep.equal(['evt_last', 'evt_late']);
  });
});
