import { expect } from 'chai';
import type { admitCall, CreditCall } from '../../src/store/access/admit-call.ts';
import type { Caller } from '../../src/store/access/authorize.ts';
import { refuseCall } from '../../src/store/access/release-call.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import { anAccount, admitted as askToAdmit, ask as askWith, type TestStore } from '../support/record.ts';

const minutes = 60_000;
const hours = 60 * minutes;

/** Admission: the quotas of keys. */
export function keyQuotaSuite(store: () => TestStore, admit: typeof admitCall): void {
  const ask = (its: TestStore, caller: Caller, call?: Partial<CreditCall>) => askWith(its, caller, call, admit);
  const admitted = (its: TestStore, caller: Caller, call?: Partial<CreditCall>) => askToAdmit(its, caller, call, admit);
  const held = async (account: string) => (await readSnapshot(store(), account)).balances.held;

  const windows = [
    ['daily', 24 * hours, 5 * minutes],
    ['weekly', 7 * 24 * hours, hours],
    ['monthly', 30 * 24 * hours, 4 * hours],
  ] as const;
  for (const [window, length, bucket] of windows) {
    it(`limit-daily limit-weekly limit-monthly D35: frees a ${window} quota not before its window has passed, and at most one bucket later`, async () => {
      const caller = await anAccount(store(), { credits: 50, quotas: { [window]: 2 } });
      // A bucket that ends between two steps of this test would free its calls then.
      store().freezeClock();
      store().advance(bucket - (store().clock.now() % bucket) + 1000);
      await admitted(store(), caller);
      store().advance(bucket);
      await admitted(store(), caller);
      const refused = await ask(store(), caller);
      expect(refused).to.deep.include({ refused: 'key_quota_exceeded', detail: window });
      const wait = ('retryAfterSeconds' in refused && refused.retryAfterSeconds) || 0;
      expect(wait * 1000).to.be.within(length - bucket - 5000, length);
      store().advance(length - bucket - 2000);
      expect(await ask(store(), caller)).to.deep.include({ refused: 'key_quota_exceeded' });
      store().advance(bucket + 2000);
      await admitted(store(), caller);
      expect(await ask(store(), caller)).to.deep.include({ refused: 'key_quota_exceeded' });
      store().advance(3 * length);
      await admitted(store(), caller);
    });
  }

  it('D79: names the first of several reached quotas, with the Retry-After of the one that lasts longest', async () => {
    const caller = await anAccount(store(), { credits: 50, quotas: { monthly: 2, daily: 1 } });
    store().freezeClock();
    await admitted(store(), caller);
    store().advance(30 * 24 * hours - 2 * hours);
    await admitted(store(), caller);
    const refused = await ask(store(), caller);
    expect(refused).to.deep.include({ refused: 'key_quota_exceeded', detail: 'monthly' });
    expect('refused' in refused && refused.retryAfterSeconds).to.be.within(24 * 3600, 24 * 3600 + 300);
  });

  it('limit-total: blocks a total quota for ever, names the quotas in their order, and works again when it is raised', async () => {
    const caller = await anAccount(store(), { credits: 50, quotas: { total: 1, monthly: 1, weekly: 1, daily: 1 } });
    const { alias } = (await listKeys(store(), caller.accountId))[0]!;
    await admitted(store(), caller);
    for (const window of ['total', 'monthly', 'weekly', 'daily'] as const) {
      expect(await ask(store(), caller)).to.deep.include({ refused: 'key_quota_exceeded', detail: window });
      await setKey(store(), caller.accountId, alias, { quotas: { [window]: 2 } });
    }
    await admitted(store(), caller);
    store().advance(400 * 24 * hours);
    const refused = await ask(store(), caller);
    expect(refused).to.deep.include({ refused: 'key_quota_exceeded', detail: 'total', retryAfterSeconds: null });
  });

  it('limit-freshness: admits exactly the quota of 40 simultaneous calls', async () => {
    const caller = await anAccount(store(), { credits: 50, quotas: { daily: 10 } });
    const answers = await Promise.all([...Array(40)].map(() => ask(store(), caller)));
    expect(answers.filter((answer) => 'admitted' in answer)).to.have.length(10);
  });

  for (const [window, length, bucket] of windows) {
    it(`D35: takes a refused call out of the ${window} quota, also when a newer bucket counts since, and once`, async () => {
      const caller = await anAccount(store(), { credits: 50, quotas: { [window]: 3, total: 4 } });
      const holdMs = 2 * length;
      const id = await admitted(store(), caller, { work: { holdMs } });
      await admitted(store(), caller);
      store().advance(bucket);
      const newer = await admitted(store(), caller, { work: { holdMs } });
      for (const inHand of [id, newer]) {
        const call = { ...caller, endpoint: 'metadata', repeat: null, id: inHand, holdMs } as const;
        const answers = [await refuseCall(store(), call), await refuseCall(store(), call)];
        expect(answers).to.deep.equal([{ done: true }, { refused: 'gone' }]);
      }
      expect(await held(caller.accountId)).to.equal(1);
      for (let n = 0; n < 2; n++) await admitted(store(), caller);
      expect(await ask(store(), caller)).to.deep.include({ refused: 'key_quota_exceeded', detail: window });
    });
  }

  it('counts the calls made before a quota was set', async () => {
    const caller = await anAccount(store(), { credits: 50 });
    const { alias } = (await listKeys(store(), caller.accountId))[0]!;
    for (let n = 0; n < 3; n++) await admitted(store(), caller);
    await setKey(store(), caller.accountId, alias, { quotas: { weekly: 3 } });
    expect(await ask(store(), caller)).to.deep.include({ refused: 'key_quota_exceeded', detail: 'weekly' });
  });
}
