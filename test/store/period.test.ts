import { expect } from 'chai';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { withRolledPeriod } from '../../src/store/money/roll-period.ts';
import type { ScriptReply } from '../../src/store/script.ts';
import { anAccount, storeOf } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

describe('a step after the end of its period', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  it('rolls the period and runs again', async () => {
    const store = storeOf(redis.connection);
    const { accountId } = await anAccount(store, { quota: 2 });
    store.advance(40 * 86_400_000);
    let steps = 0;
    const answer = await withRolledPeriod(store, accountId, async () => (++steps === 1 ? ['roll'] : ['done']));
    expect([answer, steps]).to.deep.equal([['done'], 2]);
    expect((await readSnapshot(store, accountId)).balances.period_end).to.be.above(store.clock.now());
  });

  it('D69: throws unavailable when rolling takes longer than 2 s, and does not run again', async () => {
    const store = storeOf(redis.connection);
    const { accountId } = await anAccount(store, { quota: 2 });
    const hung = Promise.withResolvers<ScriptReply>();
    const replies: Promise<ScriptReply>[] = [Promise.resolve(['roll']), hung.promise];
    let steps = 0;
    const refused = await withRolledPeriod(store, accountId, async () => replies[steps++]!).catch(
      (error: Error) => error,
    );
    expect(refused).to.include({ code: 'unavailable' });
    const sent = redis.connection.calls();
    hung.resolve(['roll']);
    // One more turn of the queue lets whoever waited for it go on.
    await new Promise(setImmediate);
    expect([steps, redis.connection.calls()]).to.deep.equal([2, sent]);
  });
});
