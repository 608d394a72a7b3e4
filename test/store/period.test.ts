import { expect } from 'chai';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { rollPeriod, withRolledPeriod } from '../../src/store/money/roll-period.ts';
import type { ScriptReply } from '../../src/store/script.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { admitted, anAccount, storeOf } from '../support/record.ts';
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

describe('an account that a clock far ahead took into a later period', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  beforeEach(() => redis.flush());
  after(() => redis.stop());

  const day = 86_400_000;
  for (const days of [70, 400]) {
    it(`comes back from ${days} days ahead with what it has used, and gets its next quota in time`, async () => {
      const store = storeOf(redis.connection);
      const caller = await anAccount(store, { quota: 2 });
      const { accountId, keyId } = caller;
      const seen = async () => (await readSnapshot(store, accountId)).balances;
      const use = async () => {
        const id = await admitted(store, caller, { work: { holdMs: 65_000 } });
        const call = {
          id,
          accountId,
          keyId,
          endpoint: 'metadata',
          repeat: null,
          line: 'GET /x',
          ip: '',
          answer: '',
        } as const;
        expect(await chargeCall(store, call, 1)).to.include({ balance: 'subscription' });
      };
      const { period_start, period_end } = await seen();
      store.advance(days * day);
      await rollPeriod(store, accountId);
      await use();
      store.advance(-days * day);
      const sweep = () => sweepRecord(store, { job: 30 * day, line: 90 * day });
      // The clock may be wrong now, instead of before: a day passes first.
      expect([(await sweep()).periods, (await sweep()).periods]).to.deep.equal([0, 0]);
      store.advance(day);
      expect([(await sweep()).periods, (await sweep()).periods]).to.deep.equal([1, 0]);
      expect(await seen()).to.deep.include({ period_start, period_end, used: 1 });
      await use();
      store.advance(period_end! - store.clock.now());
      expect((await sweep()).periods).to.equal(1);
      expect(await seen()).to.deep.include({ period_start: period_end, used: 0 });
      await use();
      expect((await verifyLedger(store, accountId)).problems).to.deep.equal([]);
    });
  }

  it('stays in its period, with its quota, while a clock is far behind for less than a day', async () => {
    const store = storeOf(redis.connection);
    const { accountId } = await anAccount(store, { quota: 2 });
    const sweep = () => sweepRecord(store, { job: 30 * day, line: 90 * day });
    const { balances } = await readSnapshot(store, accountId);
    for (const hours of [0, 23, 0, 23]) {
      store.advance(-400 * day + hours * 3_600_000);
      expect((await sweep()).periods).to.equal(0);
      store.advance(400 * day - hours * 3_600_000);
    }
    expect((await readSnapshot(store, accountId)).balances).to.deep.equal(balances);
  });
});
