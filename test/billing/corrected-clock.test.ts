import { expect } from 'chai';
import type { PaymentParts } from '../../src/billing/apply-payment.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { dueMails, takeMail } from '../../src/store/mail/take-mail.ts';
import { dueTopupLooks, lookAtTopup } from '../../src/store/money/look-at-topup.ts';
import type { TestStore } from '../support/record.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { aBuyer, buyDue, eachWithStripe, spend } from '../support/topups.ts';

const hour = 3_600_000;
const ahead = 400 * 24 * hour;

describe('after the clock of Redis was ahead and is right again', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  let parts: PaymentParts;
  eachWithStripe((payments) => {
    ({ store, stripe, parts } = payments);
  });

  const lookAndBuy = async (passedMs = 0) => {
    store.advance(passedMs);
    for (const account of await dueTopupLooks(store)) await lookAtTopup(store, account);
    await buyDue(parts, stripe.url);
    return stripe.charges.length;
  };
  const left = async (account: string) => {
    const { quota, used, packs } = (await readSnapshot(store, account)).balances;
    return Math.max(0, quota - used) + packs.reduce((sum, pack) => sum + pack.total - pack.used, 0);
  };

  for (const [what, fault] of [
    ['was not tried before', null],
    ['was charged, and whose answer was lost', 'after'],
  ] as const)
    it(`a purchase that ${what} brings its pack at once`, async () => {
      store.advance(ahead);
      const buyer = await aBuyer(store);
      await spend(store, buyer, 10);
      if (fault !== null) {
        stripe.faults.push(fault, fault, fault);
        await lookAndBuy();
      }
      store.advance(-ahead);
      expect([await lookAndBuy(), await left(buyer.accountId)]).to.deep.equal([1, 10]);
      expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
    });

  it('limit-topup-cooldown: an account that emptied its last purchase meanwhile buys again within 72 hours', async () => {
    store.advance(ahead);
    const buyer = await aBuyer(store, {}, { quota: 1 });
    await spend(store, buyer, 1);
    await lookAndBuy();
    await spend(store, buyer, 10);
    store.advance(-ahead);
    expect([await lookAndBuy(), await lookAndBuy(71 * hour)]).to.deep.equal([1, 1]);
    expect([await lookAndBuy(hour), await left(buyer.accountId)]).to.deep.equal([2, 10]);
  });

  it('D82: a reached cap is told of, although one was told of meanwhile', async () => {
    const buyer = await aBuyer(store, { monthly_cap_cents: '1' });
    const told = async () => {
      await spend(store, buyer, 1);
      await lookAndBuy();
      return takeMail(store, `cap-${buyer.accountId}`, 1);
    };
    store.advance(ahead);
    await spend(store, buyer, 8);
    const first = await told();
    store.advance(-ahead);
    const second = await told();
    expect([first, second].map((mail) => mail !== null && mail !== 'given_up' && mail.attempts)).to.deep.equal([1, 1]);
  });

  it('mails that were left meanwhile are sent at once', async () => {
    store.advance(ahead);
    const buyer = await aBuyer(store);
    await spend(store, buyer, 10);
    await lookAndBuy();
    const waiting = await dueMails(store);
    store.advance(-ahead);
    expect(await dueMails(store)).to.have.members(waiting);
    for (const id of waiting) expect(await takeMail(store, id, 1000)).to.include({ attempts: 1 });
    expect(waiting).to.have.length(2);
  });
});
