import { expect } from 'chai';
import { readUsage } from '../../src/store/access/read-usage.ts';
import { listKeys } from '../../src/store/accounts/read-keys.ts';
import { finishRemovals } from '../../src/store/accounts/remove-account.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { setKey } from '../../src/store/accounts/set-key.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { aKey, anAccount, aPlan, ask, dieWhileRemoving, type TestStore } from '../support/record.ts';

const word = async (answer: Promise<object>): Promise<string> => {
  const seen = await answer;
  return 'refused' in seen ? String(seen.refused) : 'entered';
};
const only = async (store: RecordStore, account: string) => (await listKeys(store, account))[0]!;

/** The key and the plan's rate, in front of every call. */
export function authorizeSuite(store: () => TestStore): void {
  it('accepts a working key', async () => {
    expect(await word(readUsage(store(), await anAccount(store())))).to.equal('entered');
  });

  it('refuses an unknown key, and a key whose text names another account', async () => {
    const one = await anAccount(store());
    const other = await anAccount(store());
    expect(await word(readUsage(store(), { ...one, hash: 'f'.repeat(64) }))).to.equal('invalid_api_key');
    const mixed = { accountId: other.accountId, hash: one.hash };
    expect(await word(readUsage(store(), mixed))).to.equal('invalid_api_key');
    const simultaneous = [ask(store(), one), ask(store(), mixed)].map(word);
    expect(await Promise.all(simultaneous)).to.deep.equal(['payment_required', 'invalid_api_key']);
  });

  it('D39: reports inactive before expired, and works again once both are lifted', async () => {
    const caller = await anAccount(store());
    const { alias } = await only(store(), caller.accountId);
    await setKey(store(), caller.accountId, alias, { active: false, expires: 1000 });
    expect(await word(readUsage(store(), caller))).to.equal('inactive_api_key');
    await setKey(store(), caller.accountId, alias, { active: true });
    expect(await word(readUsage(store(), caller))).to.equal('expired_api_key');
    await setKey(store(), caller.accountId, alias, { expires: null });
    expect(await word(readUsage(store(), caller))).to.equal('entered');
  });

  it('D40: marks a key as used by every call, also by a refused one, and not before', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    const { alias } = await only(store(), caller.accountId);
    const used = async () => (await only(store(), caller.accountId)).last_used_at;
    expect(await used()).to.equal(null);
    const calls = [
      ['entered', () => readUsage(store(), caller)],
      ['admitted', () => ask(store(), caller)],
      ['payment_required', () => ask(store(), caller)],
      ['inactive_api_key', () => readUsage(store(), caller)],
      ['inactive_api_key', () => ask(store(), caller)],
    ] as const;
    for (const [expected, call] of calls) {
      store().advance(60_000);
      if (expected === 'inactive_api_key') await setKey(store(), caller.accountId, alias, { active: false });
      const answer = await call();
      expect('refused' in answer ? answer.refused : 'admitted' in answer ? 'admitted' : 'entered').to.equal(expected);
      expect(await used(), expected).to.be.closeTo(store().clock.now(), 5000);
    }
  });

  it('D76: refuses a suspended account on everything', async () => {
    const caller = await anAccount(store(), { credits: 1 });
    await setAccount(store(), caller.accountId, { suspended: true });
    expect(await word(readUsage(store(), caller))).to.equal('forbidden');
    expect(await word(ask(store(), caller))).to.equal('forbidden');
  });

  it('refuses the keys of a removed account, also while they are not deleted yet', async () => {
    const caller = await anAccount(store());
    await dieWhileRemoving(store(), caller);
    expect(await word(readUsage(store(), caller))).to.equal('invalid_api_key');
    await finishRemovals(store(), (error) => {
      throw error;
    });
    expect(await word(readUsage(store(), caller))).to.equal('invalid_api_key');
    const refused = await aKey(store(), caller.accountId).catch((error: Error) => error);
    expect(refused).to.include({ code: 'not_found' });
  });

  it('counts a rate of the plan over all keys of the account, and refuses with its name and Retry-After', async () => {
    const caller = await anAccount(store(), { perMinute: 3 });
    const second = await aKey(store(), caller.accountId);
    for (const one of [caller, second, caller]) expect(await word(readUsage(store(), one))).to.equal('entered');
    const refused = await readUsage(store(), second);
    expect(refused).to.deep.include({ refused: 'rate_limited', detail: 'per-minute' });
    expect('retryAfterSeconds' in refused && refused.retryAfterSeconds).to.be.within(54, 66);
    expect(await word(readUsage(store(), await anAccount(store())))).to.equal('entered');
  });

  it('D37: names the rate that lasts longer where both are reached, with its Retry-After', async () => {
    const caller = await anAccount(store(), { perSecond: 2, perMinute: 2 });
    store().freezeClock();
    for (let n = 0; n < 2; n++) expect(await word(readUsage(store(), caller))).to.equal('entered');
    const refused = await readUsage(store(), caller);
    expect(refused).to.deep.include({ refused: 'rate_limited', detail: 'per-minute' });
    expect('refused' in refused && refused.retryAfterSeconds).to.be.within(54, 66);
  });

  it('D78: does not count calls that the rate refuses, and counts calls that later checks refuse', async () => {
    const caller = await anAccount(store(), { perMinute: 2 });
    expect(await word(ask(store(), caller, { valid: false }))).to.equal('bad_request');
    expect(await word(ask(store(), caller))).to.equal('payment_required');
    for (let n = 0; n < 5; n++) expect(await word(ask(store(), caller))).to.equal('rate_limited');
    store().advance(70_000);
    expect(await word(readUsage(store(), caller))).to.equal('entered');
  });

  it('does not count calls that one rate refuses towards the other', async () => {
    const caller = await anAccount(store(), { perSecond: 50, perMinute: 1 });
    store().freezeClock();
    await readUsage(store(), caller);
    const seen = [];
    for (let n = 0; n < 4; n++) seen.push((await readUsage(store(), caller)).rates.perSecond?.left);
    expect(new Set(seen).size, seen.join()).to.be.at.most(2);
    expect(Math.min(...seen.map(Number))).to.be.at.least(48);
  });

  it('never accepts more than the limit in any second, and accepts it again a second later', async () => {
    const caller = await anAccount(store(), { perSecond: 2 });
    const thawClock = store().freezeClock();
    const words = await Promise.all([...Array(9)].map(() => word(readUsage(store(), caller))));
    expect(words.filter((one) => one === 'entered')).to.have.length(2);
    thawClock();
    store().advance(1100);
    expect(await word(readUsage(store(), caller))).to.equal('entered');
  });

  it('begins a rate anew when the clock has gone back by more than its window', async () => {
    const caller = await anAccount(store(), { perMinute: 2 });
    store().advance(86_400_000);
    for (let n = 0; n < 2; n++) await readUsage(store(), caller);
    expect(await word(readUsage(store(), caller))).to.equal('rate_limited');
    store().advance(-86_400_000);
    for (let n = 0; n < 2; n++) expect(await word(readUsage(store(), caller))).to.equal('entered');
    const refused = await readUsage(store(), caller);
    expect('retryAfterSeconds' in refused && refused.retryAfterSeconds).to.be.within(54, 66);
  });

  it('keeps a rate when the clock has gone back by less than its window', async () => {
    const caller = await anAccount(store(), { perMinute: 2 });
    for (let n = 0; n < 2; n++) await readUsage(store(), caller);
    store().advance(-50_000);
    expect(await word(readUsage(store(), caller))).to.equal('rate_limited');
  });

  it('takes a changed plan for the next request', async () => {
    const caller = await anAccount(store(), { perMinute: 1 });
    await readUsage(store(), caller);
    expect(await word(readUsage(store(), caller))).to.equal('rate_limited');
    await aPlan(store(), caller.plan, {});
    expect(await word(readUsage(store(), caller))).to.equal('entered');
  });

  it('counts the calls made before the plan limited a window', async () => {
    const caller = await anAccount(store(), { perSecond: 100 });
    for (let n = 0; n < 5; n++) await readUsage(store(), caller);
    await aPlan(store(), caller.plan, { perSecond: 100, perMinute: 5 });
    expect(await word(readUsage(store(), caller))).to.equal('rate_limited');
  });

  it('returns both rates with a refusal too', async () => {
    const caller = await anAccount(store(), { perSecond: 1, perMinute: 30 });
    store().freezeClock();
    const answers = await Promise.all([1, 2, 3].map(() => ask(store(), caller)));
    for (const { rates } of answers.slice(1)) {
      expect(rates).to.deep.equal({ perSecond: { limit: 1, left: 0 }, perMinute: { limit: 30, left: 29 } });
    }
  });

  it('returns the rest of both rates', async () => {
    const caller = await anAccount(store(), { perSecond: 9, perMinute: 30 });
    const seen = await readUsage(store(), caller);
    expect(seen.rates).to.deep.equal({ perSecond: { limit: 9, left: 8 }, perMinute: { limit: 30, left: 29 } });
  });
}
