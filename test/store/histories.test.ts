import { expect } from 'chai';
import fc from 'fast-check';
import { AccountModel, type AccountOperation, anyOperations } from '../support/account-model.ts';
import { anAccount, aPlan, holder, lead, storeOf } from '../support/record.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { contradictions } from '../support/whole-record.ts';

const histories = Number(process.env.ROUNDS ?? 200);
/** A redis that starts again reads all that was ever written: after so many histories there is a fresh one. */
const mostInOne = 250;

describe('money over random histories', () => {
  let redis: Awaited<ReturnType<typeof startTestRedis>>;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  const restart = async () => {
    process.kill(redis.pid(), 'SIGKILL');
    await until(async () => lead(storeOf(redis.connection), holder).catch(() => false), 10, 'redis to be back');
  };

  /** Of all histories that this Redis has seen: after each of them it would take longer than the history. */
  const expectWhole = async () => {
    expect(await contradictions(redis.connection), 'contradictions of the record').to.deep.equal([]);
  };

  it(`the balances of ${histories} histories equal those of the model after each step`, async function () {
    this.timeout(300_000 + histories * 1000);
    let lived = 0;
    const live = async (history: readonly AccountOperation[]) => {
      if (lived++ % mostInOne === mostInOne - 1) {
        await expectWhole();
        await redis.stop();
        redis = await startTestRedis();
      }
      const store = storeOf(redis.connection);
      const caller = await anAccount(store);
      await aPlan(store, caller.plan, { quota: 0 });
      const world = new AccountModel(store, caller, restart);
      for (const happening of history) {
        await world.apply(happening);
        await world.check();
      }
      await world.end();
      await world.check();
    };
    await fc.assert(fc.asyncProperty(anyOperations, live), { numRuns: histories, endOnFailure: true });
    await expectWhole();
  });
});
