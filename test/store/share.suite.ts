import { expect } from 'chai';
import { setAccount } from '../../src/store/accounts.ts';
import { takeLead } from '../../src/store/leader.ts';
import { settleJob, takeJob } from '../../src/store/lifecycle.ts';
import { admitted, anAccount, failed, holder, startNext, type TestStore, theJob } from '../support/record.ts';

/** Whose turn it is. */
export function shareSuite(store: () => TestStore): void {
  beforeEach(async () => {
    while (await startNext(store()));
  });
  const fill = async (account: Parameters<typeof admitted>[1], jobs: number) => {
    for (let n = 0; n < jobs; n++) await admitted(store(), account);
  };
  const turns = async (many: number) => {
    const accounts: string[] = [];
    for (let n = 0; n < many; n++) accounts.push((await startNext(store()))?.account ?? 'nobody');
    return accounts;
  };
  const shareOf = (seen: readonly string[], account: string) => seen.filter((one) => one === account).length;

  it('takes turns between accounts, however much one has queued', async () => {
    const [big, small] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 9 })];
    await fill(big, 40);
    await fill(small, 3);
    expect(shareOf(await turns(6), small.account)).to.equal(3);
  });

  it('lets a newcomer start at the next turn but one at the latest', async () => {
    const [big, late] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 1 })];
    await fill(big, 60);
    await turns(25);
    await fill(late, 1);
    expect(await turns(2)).to.include(late.account);
  });

  it('lets nobody save up turns while idle', async () => {
    const [busy, idle] = [await anAccount(store(), { credits: 99 }), await anAccount(store(), { credits: 99 })];
    await fill(busy, 50);
    await turns(25);
    await fill(idle, 12);
    expect(shareOf(await turns(10), idle.account)).to.be.within(4, 6);
  });

  it('gives turns by weight', async () => {
    const [heavy, light] = [
      await anAccount(store(), { credits: 99, weight: 3 }),
      await anAccount(store(), { credits: 99 }),
    ];
    await fill(heavy, 40);
    await fill(light, 40);
    expect(shareOf(await turns(24), heavy.account)).to.be.within(17, 19);
  });

  it('leaves the share of an account that is idle or at its own limit to the others', async () => {
    const [limited, other] = [
      await anAccount(store(), { credits: 99, concurrency: 2 }),
      await anAccount(store(), { credits: 99 }),
    ];
    await fill(limited, 10);
    await fill(other, 10);
    expect(shareOf(await turns(10), limited.account)).to.equal(2);
    await setAccount(store(), limited.account, { concurrency: 3 });
    expect(shareOf(await turns(2), limited.account)).to.equal(1);
  });

  it('starts the next job of a limited account when one has ended', async () => {
    const limited = await anAccount(store(), { credits: 9, concurrency: 1 });
    await fill(limited, 2);
    const first = await startNext(store());
    expect(await startNext(store())).to.equal(null);
    await settleJob(store(), holder, await theJob(store(), first!.id), failed);
    expect((await startNext(store()))?.account).to.equal(limited.account);
  });

  it('takes no more than the slots of the whole system', async () => {
    const caller = await anAccount(store(), { credits: 9 });
    await fill(caller, 2);
    await takeLead(store(), holder);
    expect(await takeJob(store(), holder, 0)).to.equal(null);
    expect(await takeJob(store(), holder, 1_000_000)).to.be.a('string');
  });
}
