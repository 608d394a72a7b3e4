import { expect } from 'chai';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { listBlocks } from '../../src/store/access/list-blocks.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { admitted, anAccount, type TestStore } from '../support/record.ts';

const day = 86_400_000;
const ahead = 400 * day;

describe('after the clock of Redis was ahead by 400 days and is right again', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('the hold of a synchronous call whose API died meanwhile is released', async () => {
    store.advance(ahead);
    const caller = await anAccount(store, { credits: 1 });
    await admitted(store, caller, { work: { holdMs: 65_000 } });
    store.advance(-ahead);
    expect((await sweepRecord(store, { job: 30 * day, line: 90 * day })).calls).to.equal(1);
    await removeAccount(store, caller.accountId, caller.slug);
  });

  it('D38: an address that was blocked meanwhile is not, and its failures of then count no more', async () => {
    const fail = () => countAuthFailure(store, '192.0.2.7', { maxFailures: 2, windowMs: day / 2, blockMs: day / 4 });
    const blocked = async () => (await listBlocks(store)).map(({ until }) => (until - store.clock.now()) / day);
    store.advance(ahead);
    for (let n = 0; n < 3; n++) await fail();
    expect(await blocked()).to.have.length(1);
    store.advance(-ahead);
    expect(await blocked()).to.deep.equal([]);
    expect(await fail()).to.deep.equal({ failures: 1, until: null });
    await fail();
    const [lasts] = await blocked();
    expect(lasts).to.be.within(0.24, 0.26);
  });
});
