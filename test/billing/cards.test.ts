import { expect } from 'chai';
import { applyPayment } from '../../src/billing/apply-payment.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { startCardWatch } from '../../src/billing/watch-cards.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { keys } from '../../src/store/keys.ts';
import { dueCards } from '../../src/store/money/card-expiry.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { invited } from '../support/browser-session.ts';
import { eachWithMailedRecord, type MailSender } from '../support/mail-sender.ts';
import { anAccount, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { seller } from '../support/topups.ts';

const day = 86_400_000;

describe('stored cards', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let sender: MailSender;
  eachWithMailedRecord((made, given) => {
    [store, sender] = [made, given];
  });
  beforeEach(async () => {
    stripe = await startStripe();
  });
  afterEach(() => stripe.stop());

  const provider = () => openStripe({ key: () => 'sk_test_1', url: stripe.url, now: store.clock.now });
  /** Lets two controllers look up what is due and send what is to be said; returns the subjects. */
  const told = async (days = 0, seen: TestStore = store): Promise<(string | undefined)[]> => {
    store.advance(days * day);
    const { metrics } = sender;
    const log = aLog().log;
    const watches = [1, 2].map(() =>
      startCardWatch({ store: seen, provider: provider(), metrics, log, intervalMs: 60_000 }),
    );
    await Promise.all(watches.map((watch) => watch.wake()));
    await Promise.all(watches.map((watch) => watch.close()));
    await sender.send();
    return sender.box.mails.splice(0).map(({ mail }) => mail.subject);
  };
  /** A month and a year in which a card ends whose last day is over so many days from now, at least. */
  const endIn = (days: number) => {
    const end = new Date(store.clock.now() + days * day);
    return { exp_month: end.getUTCMonth() + 1, exp_year: end.getUTCFullYear() };
  };
  const endOf = ({ exp_month, exp_year }: ReturnType<typeof endIn>) => Date.UTC(exp_year, exp_month, 1);
  const subjectOf = (card: ReturnType<typeof endIn>, slug: string) => {
    const month = new Date(endOf(card) - 1).toISOString().slice(0, 7);
    return `The card visa 4242 of ${slug} expires at the end of ${month}`;
  };
  const daysBefore = (end: number, days: number) => (end - days * day - store.clock.now()) / day;
  const anOwner = async () => {
    const { accountId, slug } = await anAccount(store, { quota: 10, paid: true });
    await invited(store, accountId, 'owner', 'ada@example.com');
    let at = 0;
    const storeCard = (payment_method: string) => {
      const parts = { store, provider: provider(), seller, metrics: sender.metrics, log: aLog().log };
      return applyPayment(parts, { kind: 'stored', account: accountId, customer: 'cus_1', payment_method, at: ++at });
    };
    return { accountId, slug, storeCard };
  };

  it('make one mail 30 days and one 7 days before their end, whatever is stored again meanwhile', async () => {
    const { accountId, slug, storeCard } = await anOwner();
    const card = endIn(90);
    stripe.cards.set('pm_1', card);
    await storeCard('pm_1');
    expect(await told()).to.deep.equal([]);
    expect(Number((await readTopup(store, accountId)).card_expires)).to.equal(endOf(card));
    const subject = subjectOf(card, slug);
    expect(await told(daysBefore(endOf(card), 31))).to.deep.equal([]);
    expect(await told(1)).to.deep.equal([subject]);
    await storeCard('pm_1');
    expect(await told(20)).to.deep.equal([]);
    expect(await told(3)).to.deep.equal([subject]);
    expect(await told(6)).to.deep.equal([]);
    expect(await told(2)).to.deep.equal([]);
    expect(await store.connection.send(['ZCARD', keys.expiringCards])).to.equal(0);
  });

  it('make no mail, and are not forgotten, while the clock of Redis has jumped', async () => {
    const { slug, storeCard } = await anOwner();
    const card = endIn(90);
    stripe.cards.set('pm_1', card);
    await storeCard('pm_1');
    await told();
    const clock = { now: Date.now, machineAheadMs: () => 0, isSteady: () => false };
    const jumped = { ...store, connection: { ...store.connection, clock } };
    const ahead = daysBefore(endOf(card), 29);
    expect([await told(ahead, jumped), await told(100, jumped)]).to.deep.equal([[], []]);
    store.advance(-(ahead + 100) * day);
    expect(await told(ahead)).to.deep.equal([subjectOf(card, slug)]);
  });

  it('make no mail when the bank renews them or another one is stored, which is looked up itself', async () => {
    const { accountId, storeCard } = await anOwner();
    const card = endIn(90);
    stripe.cards.set('pm_1', card);
    await storeCard('pm_1');
    await told();
    stripe.cards.set('pm_1', { ...card, exp_year: card.exp_year + 3 });
    expect(await told(daysBefore(endOf(card), 29))).to.deep.equal([]);
    const other = endIn(3_000);
    stripe.cards.set('pm_2', other);
    await storeCard('pm_2');
    expect((await readTopup(store, accountId)).card_expires).to.equal(undefined);
    expect(await told()).to.deep.equal([]);
    expect(Number((await readTopup(store, accountId)).card_expires)).to.equal(endOf(other));
    await setTopup(store, accountId, { payment_method: '' });
    expect(await store.connection.send(['ZCARD', keys.expiringCards])).to.equal(0);
  });

  it('are looked up an hour later when the provider is away, and forgotten when they or their account are gone', async () => {
    const { accountId, slug, storeCard } = await anOwner();
    await storeCard('pm_gone');
    await stripe.stop();
    expect(await told()).to.deep.equal([]);
    expect(await dueCards(store)).to.deep.equal([]);
    const { values } = await sender.metrics.upkeep_errors_total.get();
    expect(values.some(({ labels }) => labels.task === 'card')).to.equal(true);
    stripe = await startStripe();
    await told(1 / 24);
    expect(await store.connection.send(['ZCARD', keys.expiringCards])).to.equal(0);
    stripe.cards.set('pm_1', endIn(20));
    await storeCard('pm_1');
    await removeAccount(store, accountId, slug);
    expect(await told()).to.deep.equal([]);
    expect(await store.connection.send(['ZCARD', keys.expiringCards])).to.equal(0);
  });
});
