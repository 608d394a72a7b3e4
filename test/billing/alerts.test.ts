import { expect } from 'chai';
import type { Purchase } from '../../src/model/purchase.ts';
import { endMail } from '../../src/store/mail/end-mail.ts';
import { takeMail } from '../../src/store/mail/take-mail.ts';
import { endPurchase } from '../../src/store/money/end-purchase.ts';
import { reversePurchase } from '../../src/store/money/reverse-purchase.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, aPlan, holder, lead, type TestStore } from '../support/record.ts';
import { seller, spend } from '../support/topups.ts';

type Reader = Awaited<ReturnType<typeof anAccount>>;

const visit: Omit<Purchase, 'account'> = {
  ...{ id: 'visit', kind: 'offer', pack_title: 'Big', pack_total: 90, price_cents: 900, currency: 'eur' },
  ...{ customer: 'c', payment_method: 'm' },
};

describe('the alert about what is used', () => {
  let store: TestStore;
  eachWithEmptyRecord((made) => {
    store = made;
  });
  beforeEach(() => lead(store, holder));

  /** Returns percent and rest of the alert that one of so many charges left, or null. */
  const alertAfter = async (reader: Reader, charges: number) => {
    await spend(store, reader, charges);
    const mail = await takeMail(store, `alert-${reader.accountId}`, 1000);
    if (mail === null || mail === 'given_up' || mail.kind !== 'alert') return null;
    await endMail(store, mail, [], null);
    return [mail.percent, mail.left];
  };

  it('counts credits that lapsed with a smaller plan as not used', async () => {
    const reader = await anAccount(store, { quota: 100 });
    expect(await alertAfter(reader, 2)).to.equal(null);
    await aPlan(store, reader.plan, { quota: 10 });
    expect(await alertAfter(reader, 2)).to.equal(null);
    expect(await alertAfter(reader, 1)).to.deep.equal([50, 5]);
    await aPlan(store, reader.plan, { quota: 6 });
    expect(await alertAfter(reader, 1)).to.deep.equal([100, 0]);
  });

  it('counts credits that lapsed with a refund as not used', async () => {
    const reader = await anAccount(store, { quota: 10 });
    const purchase = { ...visit, account: reader.accountId };
    await endPurchase(store, purchase, { verdict: 'paid', payment: 'pi_1', seller });
    expect(await alertAfter(reader, 2)).to.equal(null);
    await reversePurchase(store, purchase, 'refunded', 'pi_1');
    expect(await alertAfter(reader, 2)).to.equal(null);
    expect(await alertAfter(reader, 1)).to.deep.equal([50, 5]);
  });
});
