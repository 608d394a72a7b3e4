import { expect } from 'chai';
import { recordVerdict } from '../../src/store/jobs/record-verdict.ts';
import { advanceWith, aRunner } from '../support/advance.ts';
import { admitted, anAccount, holder, lead, storeOf, takeJob, theJob } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

describe('a worker that has ended when its controller first looks at it', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  it('is judged by the verdict that it sent', async () => {
    const store = storeOf(redis.connection);
    const id = await admitted(store, await anAccount(store, { credits: 1 }));
    await lead(store, holder);
    expect(await takeJob(store, holder, 1_000_000)).to.equal(id);
    const runner = aRunner({ [`${id}-1`]: { is: 'failed', code: 'worker_failed' } });
    const start: typeof runner.start = async (attempt) => {
      await recordVerdict(store, id, 1, { is: 'failed', code: 'private' });
      return runner.start(attempt);
    };
    const advance = advanceWith(store, { ...runner, start });
    for (let delay: number | null = 1; delay !== null; ) delay = await advance(id);
    expect(await theJob(store, id)).to.include({ status: 'Error', error_code: 'private', failures: 0 });
  });
});
