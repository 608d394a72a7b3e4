import { expect } from 'chai';
import type { PurchaseEnd } from '../../src/model/purchase.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { endMail } from '../../src/store/mail/end-mail.ts';
import { dueMails, type Mail, takeMail } from '../../src/store/mail/take-mail.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { findPurchase, readPurchase } from '../../src/store/money/read-purchases.ts';
import { reversePurchase } from '../../src/store/money/reverse-purchase.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { duePurchases, takePurchase } from '../../src/store/money/take-purchase.ts';
import { anAccount, aPack, aPlan, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';

const topup = {
  enabled: '1',
  threshold_percent: '30',
  pack_title: 'Auto',
  pack_total: '10',
  price_cents: '990',
  currency: 'eur',
  customer: 'cus_1',
  payment_method: 'pm_1',
};

const seller = { name: 'Films Ltd', address: '1 Main Street', tax: 'VAT 0 %' };
let payments = 0;
const paid = (): PurchaseEnd => ({ verdict: 'paid', payment: `pi_${payments++}`, seller });
const declined: PurchaseEnd = { verdict: 'declined', payment: '', reason: 'Your card was declined.' };

/** Automatic top-up: one purchase at a time, paid for once. */
export function purchasesSuite(store: () => TestStore): void {
  type Caller = Awaited<ReturnType<typeof anAccount>>;
  const spend = async (caller: Caller) => settleJob(store(), holder, await aRunningJob(store(), caller), completed);
  const books = async (caller: Caller) => (await readSnapshot(store(), caller.accountId)).balances;
  const verified = async (caller: Caller) =>
    expect((await verifyLedger(store(), caller.accountId)).problems).to.deep.equal([]);
  const low = async () => {
    const caller = await anAccount(store(), { quota: 10, paid: true });
    await setTopup(store(), caller.accountId, topup);
    for (let n = 0; n < 4; n++) await spend(caller);
    expect(await duePurchases(store())).not.to.include(caller.accountId);
    await spend(caller);
    return caller;
  };
  const take = async (caller: Caller) => {
    const purchase = await takePurchase(store(), caller.accountId, 60_000);
    if (purchase === null || purchase === 'capped') throw new Error(`no purchase: ${purchase}`);
    return purchase;
  };

  it('topup-buy D49: makes one purchase due below the threshold, with one id over all tries, and adds its pack once', async () => {
    const caller = await low();
    await spend(caller);
    expect(await duePurchases(store())).to.include(caller.accountId);
    const purchase = await take(caller);
    expect(await takePurchase(store(), caller.accountId, 60_000)).to.equal(null);
    await spend(caller);
    store().advance(60_001);
    expect((await take(caller)).id).to.equal(purchase.id);
    const ends = await Promise.all([1, 2, 3].map(() => endPurchase(store(), purchase, paid())));
    expect(ends.toSorted()).to.deep.equal(['paid', 'stale', 'stale']);
    expect((await books(caller)).packs.map((pack) => [pack.title, pack.total])).to.deep.equal([['Auto', 10]]);
    await verified(caller);
  });

  it('keeps a purchase that may be paid, with its terms, although the settings change between its tries', async () => {
    const caller = await low();
    const purchase = await take(caller);
    const change = { enabled: '0', price_cents: '99000', pack_total: '1', monthly_cap_cents: '1' };
    await setTopup(store(), caller.accountId, change);
    store().advance(60_001);
    const again = await take(caller);
    expect(again).to.deep.equal({ ...purchase, attempt: 2, isWanted: false });
    expect(await endPurchase(store(), again, paid())).to.equal('paid');
    expect((await books(caller)).packs.map((pack) => pack.total)).to.deep.equal([10]);
  });

  it('buys nothing for a removed account, and removes none while a purchase is under way', async () => {
    const idle = await low();
    await removeAccount(store(), idle.accountId, idle.slug);
    expect(await takePurchase(store(), idle.accountId, 60_000)).to.equal(null);
    const buying = await low();
    const purchase = await take(buying);
    const refused = await removeAccount(store(), buying.accountId, buying.slug).catch((error: Error) => error);
    expect(refused).to.include({ code: 'in_use' });
    await endPurchase(store(), purchase, paid());
    await removeAccount(store(), buying.accountId, buying.slug);
    await verified(buying);
  });

  it('buys nothing when it was disabled before the first try', async () => {
    const caller = await low();
    await setTopup(store(), caller.accountId, { enabled: '0' });
    expect(await takePurchase(store(), caller.accountId, 60_000)).to.equal(null);
  });

  it('limit-topup-cooldown: buys again only 72 hours after a purchase that succeeded', async () => {
    const caller = await low();
    await endPurchase(store(), await take(caller), paid());
    await aPlan(store(), caller.plan, { quota: 1, paid: true });
    for (let n = 0; n < 9; n++) await spend(caller);
    expect(await duePurchases(store())).not.to.include(caller.accountId);
    store().advance(72 * 3_600_000);
    await spend(caller);
    expect(await duePurchases(store())).to.include(caller.accountId);
  });

  it('topup-fail: is disabled by a declined charge, and adds nothing', async () => {
    const caller = await low();
    expect(await endPurchase(store(), await take(caller), declined)).to.equal('declined');
    expect((await readTopup(store(), caller.accountId)).enabled).to.equal('0');
    await spend(caller);
    expect(await duePurchases(store())).not.to.include(caller.accountId);
    expect((await books(caller)).packs).to.deep.equal([]);
  });

  it('adds up the cost of a month, and buys nothing that would pass the cap', async () => {
    const caller = await low();
    await setTopup(store(), caller.accountId, { monthly_cap_cents: '2500' });
    const buy = async () => endPurchase(store(), await take(caller), paid());
    const lowAgain = async () => {
      await setTopup(store(), caller.accountId, { last_purchase_at: '' });
      while (!(await duePurchases(store())).includes(caller.accountId)) await spend(caller);
    };
    for (const _ of [1, 2]) {
      await buy();
      await lowAgain();
    }
    expect(await takePurchase(store(), caller.accountId, 60_000)).to.equal('capped');
  });

  it('buys nothing for an account with a free plan', async () => {
    const caller = await anAccount(store(), { quota: 10, paid: false });
    await setTopup(store(), caller.accountId, topup);
    for (let n = 0; n < 6; n++) await spend(caller);
    expect(await duePurchases(store())).not.to.include(caller.accountId);
  });

  it('does not read the top-up of an account that has none when a job is charged', async () => {
    const caller = await anAccount(store(), { quota: 10, paid: true });
    // A charge that read it would fail: this key is no hash.
    await store().connection.send(['SET', keys.topup(caller.accountId), 'no hash']);
    await spend(caller);
    expect((await books(caller)).used).to.equal(1);
  });

  it('buys nothing past the monthly cap, and stays enabled', async () => {
    const caller = await low();
    await setTopup(store(), caller.accountId, { monthly_cap_cents: '500' });
    expect(await takePurchase(store(), caller.accountId, 60_000)).to.equal('capped');
    expect(await takePurchase(store(), caller.accountId, 60_000)).to.equal(null);
    expect((await readTopup(store(), caller.accountId)).enabled).to.equal('1');
  });

  const mailsOf = async (caller: Caller): Promise<Mail[]> => {
    const mails = await Promise.all((await dueMails(store())).map((id) => takeMail(store(), id, 60_000)));
    const mine = mails.filter((mail) => mail !== null && mail !== 'given_up' && mail.account === caller.accountId);
    return (mine as Mail[]).toSorted((a, b) => a.id.localeCompare(b.id));
  };
  const places = async () => Number(await store().connection.send(['LLEN', keys.invoices]));

  it('events-7: gives an invoice the next number once it is paid, and leaves one mail about it', async () => {
    const before = await places();
    const [first, failing, second] = [await low(), await low(), await low()];
    const bought = await take(first);
    await Promise.all([1, 2, 3].map(() => endPurchase(store(), bought, paid())));
    await endPurchase(store(), await take(failing), declined);
    await endPurchase(store(), await take(second), paid());
    const record = await readPurchase(store(), first.accountId, bought.id);
    expect(record).to.deep.include({ state: 'paid', invoice: before + 1, seller, buyer: first.slug, price_cents: 990 });
    expect(await findPurchase(store(), record!.payment)).to.deep.equal(record);
    expect(await places()).to.equal(before + 2);
    expect((await mailsOf(first)).map(({ kind }) => kind)).to.deep.equal(['alert', 'invoice']);
  });

  it('adds the pack of money that arrives after the decline, and nothing for what was refunded before', async () => {
    const late = await low();
    const purchase = await take(late);
    await endPurchase(store(), purchase, declined);
    expect(await endPurchase(store(), purchase, paid())).to.equal('paid');
    expect(await endPurchase(store(), purchase, declined)).to.equal('stale');
    expect((await books(late)).packs.map((pack) => pack.total)).to.deep.equal([10]);
    const refunded = await low();
    const taken = await take(refunded);
    expect(await reversePurchase(store(), taken, 'refunded', 'pi_r')).to.equal(0);
    expect(await endPurchase(store(), taken, paid())).to.equal('stale');
    expect((await books(refunded)).packs).to.deep.equal([]);
    expect(await duePurchases(store())).not.to.include(refunded.accountId);
    for (const caller of [late, refunded]) await verified(caller);
  });

  it('takes back what is left of a refunded pack, once, and disables the top-up of a disputed one', async () => {
    const caller = await low();
    const purchase = await take(caller);
    await endPurchase(store(), purchase, paid());
    for (let n = 0; n < 7; n++) await spend(caller);
    const back = () => reversePurchase(store(), purchase, 'disputed', 'pi_d');
    expect([await back(), await back()]).to.deep.equal([8, null]);
    const [pack] = (await books(caller)).packs;
    expect([pack?.total, pack?.used]).to.deep.equal([2, 2]);
    expect((await readTopup(store(), caller.accountId)).enabled).to.equal('0');
    await verified(caller);
  });

  it('disables the top-up and mails the operators when a refunded payment is disputed, once, and lapses nothing more', async () => {
    const caller = await low();
    const purchase = await take(caller);
    await endPurchase(store(), purchase, paid());
    const back = (state: 'refunded' | 'disputed') => reversePurchase(store(), purchase, state, 'pi_d');
    const reversedMails = async () => (await mailsOf(caller)).filter(({ kind }) => kind === 'reversed');
    const topup = async () => (await readTopup(store(), caller.accountId)).enabled;
    expect([await back('refunded'), await back('refunded'), await topup()]).to.deep.equal([10, null, '1']);
    const mails = await reversedMails();
    expect(mails.map((mail) => 'lapsed' in mail && mail.lapsed)).to.deep.equal([10]);
    await endMail(store(), mails[0]!, [], null);
    expect([await back('disputed'), await back('disputed'), await back('refunded')]).to.deep.equal([0, null, null]);
    expect(await topup()).to.equal('0');
    expect(await readPurchase(store(), caller.accountId, purchase.id)).to.include({ state: 'disputed' });
    expect((await reversedMails()).map((mail) => 'lapsed' in mail && mail.lapsed)).to.deep.equal([0]);
    await verified(caller);
  });

  it('mails an alert once for each crossing of 50, 80, 90 and 100 %, and again after a grant', async () => {
    const caller = await anAccount(store(), { quota: 10 });
    const percents: (number | null)[] = [];
    const spendAll = async () => {
      for (let n = 0; n < 10; n++) {
        await spend(caller);
        const [mail] = await mailsOf(caller);
        percents.push(mail?.kind === 'alert' ? mail.percent : null);
        if (mail) await endMail(store(), mail, [], null);
      }
    };
    await spendAll();
    const none = [null, null, null, null];
    expect(percents).to.deep.equal([...none, 50, null, null, 80, 90, 100]);
    await aPack(store(), caller.accountId, 10);
    await spendAll();
    expect(percents.slice(10)).to.deep.equal([...none, 50, null, null, 80, 90, 100]);
  });

  it('mails no alert to an account that has them off, and keeps an unsent mail until its lease ends', async () => {
    const quiet = await anAccount(store(), { quota: 1, alerts: false });
    await spend(quiet);
    expect(await mailsOf(quiet)).to.deep.equal([]);
    const told = await anAccount(store(), { quota: 1 });
    await spend(told);
    const [mail] = await mailsOf(told);
    expect(await mailsOf(told)).to.deep.equal([]);
    await endMail(store(), mail!, ['a@example.com'], 1000);
    store().advance(1001);
    const [again] = await mailsOf(told);
    expect(again).to.include({ attempts: 2, done: 'a@example.com' });
    store().advance(8 * 86_400_000);
    expect(await takeMail(store(), mail!.id, 1)).to.equal('given_up');
  });

  it('gives up no mail for its age while the clock of Redis has jumped', async () => {
    const told = await anAccount(store(), { quota: 1 });
    await spend(told);
    const [mail] = await mailsOf(told);
    store().advance(8 * 86_400_000);
    const clock = { now: Date.now, machineAheadMs: () => 0, isSteady: () => false };
    const jumped = { ...store(), connection: { ...store().connection, clock } };
    expect(await takeMail(jumped, mail!.id, 1)).to.include({ attempts: 2 });
    store().advance(2);
    expect(await takeMail(store(), mail!.id, 1)).to.equal('given_up');
  });

  it('D82: mails once a month that the cap prevents a purchase', async () => {
    const caller = await low();
    await setTopup(store(), caller.accountId, { monthly_cap_cents: '500' });
    const capped = async () => {
      expect(await takePurchase(store(), caller.accountId, 60_000)).to.equal('capped');
      const mails = await mailsOf(caller);
      for (const mail of mails) await endMail(store(), mail, [], null);
      await spend(caller);
      return mails.filter(({ kind }) => kind === 'cap').length;
    };
    expect([await capped(), await capped()]).to.deep.equal([1, 0]);
    store().advance(32 * 86_400_000);
    await aPlan(store(), caller.plan, { quota: 3, paid: true });
    await spend(caller);
    expect(await capped()).to.equal(1);
  });
}
