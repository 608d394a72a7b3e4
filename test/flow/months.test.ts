import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startPurchases } from '../../src/billing/buy-due.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { readAccount } from '../../src/store/accounts/read-accounts.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { openBooks, terms } from '../support/months-model.ts';
import { ask, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { type StripeStandIn, startStripe } from '../support/stripe-stand-in.ts';
import { aBuyer, seller } from '../support/topups.ts';

const [hour, day] = [3_600_000, 86_400_000];
/** 90 days from the 31st of January of a leap year: four periods of different lengths begin. */
const began = Date.UTC(2028, 0, 31, 12);
const days = 90;
const keyDays = 86;

describe('90 days of an account', () => {
  let store: TestStore;
  let stripe: StripeStandIn;
  eachWithEmptyRecord((made) => {
    store = made;
  });
  beforeEach(async () => {
    stripe = await startStripe();
  });
  afterEach(() => stripe.stop());

  const advanceTo = (at: number) => store.advance(at - store.clock.now());

  for (const [title, callsOf] of [
    ['steady', () => 3],
    ['in bursts', (n: number) => (n * n * 7) % 13],
    ['with pauses', (n: number) => (Math.floor(n / 9) % 2 === 0 ? 6 : 0)],
  ] as const) {
    it(`D42 D49 D50: leave the balances that the model has, day by day, when calls come ${title}`, async () => {
      advanceTo(began);
      const { credits, quota, daily, pack, cents, capCents } = terms;
      const change = { pack_total: `${pack}`, price_cents: `${cents}`, monthly_cap_cents: `${capCents}` };
      const buyer = await aBuyer(store, change, { quota, credits, quotas: { daily } });
      const keyEndsAt = began + keyDays * day;
      await setKey(store, buyer.accountId, buyer.keyId.slice(0, 8), { expires: keyEndsAt });
      const model = openBooks((await readAccount(store, buyer.accountId)).created_at, keyEndsAt);
      const provider = openStripe({ key: () => 'sk_test_1', url: stripe.url, now: store.clock.now });
      const { log } = aLog();
      const buying = startPurchases({ store, provider, seller, metrics: makeMetrics(), log, intervalMs: 60_000 });
      const call = async () => {
        const said = await ask(store, buyer, { work: { holdMs: 60_000 } });
        if (!('admitted' in said)) return 'refused' in said ? said.refused : 'repeated';
        const held = {
          id: said.admitted,
          endpoint: 'metadata',
          repeat: null,
          line: 'GET',
          ip: '',
          answer: '',
        } as const;
        await chargeCall(store, { ...buyer, ...held }, 1);
        return null;
      };
      for (let n = 1; n <= days; n++) {
        // No two days have the same hour, so no call is just 24 hours old.
        advanceTo(began + n * day + ((n * 7) % 24) * hour);
        for (let count = callsOf(n); count > 0; count--) {
          expect(await call(), `day ${n}`).to.equal(model.call(store.clock.now()));
        }
        await buying.wake();
        model.buy(store.clock.now());
        const { balances } = await readSnapshot(store, buyer.accountId);
        const packs = balances.packs.map(({ total, used }) => ({ total, used }));
        const { used, credits_consumed: consumed } = balances;
        const { left, purchases, ...wanted } = model.books(store.clock.now());
        expect({ used, packs, consumed }, `day ${n}`).to.deep.equal(wanted);
        expect(stripe.charges.length, `day ${n}`).to.equal(purchases);
      }
      await buying.close();
      expect(stripe.charges.length).to.be.at.least(1);
      expect((await verifyLedger(store, buyer.accountId)).problems).to.deep.equal([]);
    });
  }
});
