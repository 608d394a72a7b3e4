import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { applyPayment, type PaymentParts } from '../../src/billing/apply-payment.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import type { Purchase } from '../../src/model/purchase.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { keys } from '../../src/store/keys.ts';
import { listPurchases } from '../../src/store/money/read-purchases.ts';
import { readTopup } from '../../src/store/money/set-topup.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithMailedRecord, type MailSender } from '../support/mail-sender.ts';
import { anAccount, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { seller } from '../support/topups.ts';

describe('payments for an account that is not there', () => {
  let store: TestStore;
  let sender: MailSender;
  let parts: PaymentParts;
  let said: ReturnType<typeof aLog>['lines'];
  eachWithMailedRecord((made, given) => {
    [store, sender] = [made, given];
  });
  beforeEach(async () => {
    const { log, lines } = aLog();
    said = lines;
    const provider = openStripe({ key: () => 'sk_test_1', url: 'http://127.0.0.1:1', now: store.clock.now });
    parts = { store, provider, seller, metrics: makeMetrics(), log };
    for (const email of ['op@example.com', 'ops@example.com']) await invited(store, '', 'operator', email);
  });

  const visitOf = (account: string): Purchase => ({
    ...{ id: 'visit', account, kind: 'offer', pack_title: 'Big', pack_total: 50, price_cents: 990, currency: 'eur' },
    ...{ customer: 'cus_1', payment_method: 'pm_1' },
  });
  const pay = (account: string, event: string) =>
    applyPayment(parts, { kind: 'paid', purchase: visitOf(account), payment: 'pi_1', at: 1_000 }, event);
  const mails = async () => {
    await sender.send();
    return sender.box.mails.splice(0);
  };
  const errors = () => said.filter((line) => /"error".*must be refunded by hand/.test(line));
  const outcomes = async () => {
    const counted = (await parts.metrics.purchases_total.get()).values.filter(({ value }) => value > 0);
    return counted.map(({ labels, value }) => [labels.outcome, value]);
  };

  it('payments for an account that was removed while its checkout was open add nothing, and one mail tells each operator to refund them', async () => {
    const { accountId, slug } = await anAccount(store);
    await removeAccount(store, accountId, slug);
    await pay(accountId, 'evt_1');
    const told = await mails();
    expect(told.map(({ to }) => to)).to.deep.equal(['op@example.com', 'ops@example.com']);
    expect(told[0]!.mail.subject).to.equal(`A payment must be refunded by hand: EUR 9.90 by ${slug}`);
    for (const words of [accountId, 'has been removed', 'Refund the payment', '"Big"', 'pi_1'])
      expect(told[0]!.mail.text).to.include(words);
    // The same event again, and another one of the same payment.
    for (const event of ['evt_1', 'evt_2']) await pay(accountId, event);
    expect([(await mails()).length, errors().length, await outcomes()]).to.deep.equal([0, 1, [['unbooked', 1]]]);
    expect(await listPurchases(store, accountId)).to.deep.equal([]);
    expect((await readSnapshot(store, accountId)).balances.packs).to.deep.equal([]);
    expect((await readTopup(store, accountId)).payment_method).to.equal(undefined);
    expect(await store.connection.send(['LLEN', keys.invoices])).to.equal(0);
  });

  it('payments for an account that a restored record does not have are told of in the same way, before and after the refund', async () => {
    await pay('lost-account', 'evt_1');
    const [told] = await mails();
    expect(told!.mail.subject).to.equal('A payment must be refunded by hand: EUR 9.90 by lost-account');
    expect(told!.mail.text).to.include('is not in the record').and.include('Refund the payment').and.include('pi_1');
    await pay('lost-account', 'evt_2');
    expect([(await mails()).length, errors().length, await outcomes()]).to.deep.equal([0, 1, [['unbooked', 1]]]);
    await applyPayment(parts, { kind: 'refunded', purchase: visitOf('lost-account'), payment: 'pi_1' }, 'evt_3');
    expect(said.at(-1)).to.include('a payment of an account that is unknown was taken back');
  });

  it('are refused, so that the provider reports them again, while no mail can be left', async () => {
    const { accountId, slug } = await anAccount(store);
    await removeAccount(store, accountId, slug);
    await store.connection.send(['SET', keys.outbox, 'no hash']);
    expect(await pay(accountId, 'evt_1').catch((error: Error) => error)).to.be.instanceOf(Error);
    await store.connection.send(['DEL', keys.outbox]);
    await pay(accountId, 'evt_1');
    expect(await mails()).to.have.length(2);
  });
});
