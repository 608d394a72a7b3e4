import { expect } from 'chai';
import { makeProgressNotes } from '../../src/controller/progress-notes.ts';
import type { AttemptProgress } from '../../src/model/attempt-protocol.ts';
import { anAccount, aRunningJob, storeOf, theJob } from '../support/record.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a report of progress that waits to be written', () => {
  it('is dropped when Redis is away by then, and ends no controller', async () => {
    const redis = await startTestRedis();
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    let [tried, ended] = [0, 0];
    const counting: typeof store.connection.eval = async (...asked) => {
      tried++;
      return store.connection.eval(...asked).finally(() => ended++);
    };
    const notes = makeProgressNotes({ ...store, connection: { ...store.connection, eval: counting } }, 7_200_000);
    const report = (progress: number): AttemptProgress => ({
      ...{ progress, stage: 'fetch', speed_bytes: null, eta_seconds: null },
    });
    expect(await notes.report(job, report(1))).to.equal(true);
    expect((await theJob(store, job.id)).progress).to.equal(1);
    await notes.report(job, report(2));
    await redis.stop();
    // A failure that nobody catches ends the process, and so this test.
    await until(() => tried === 2 && ended === 2, 10, 'the report was tried');
    notes.forget(job.id, 1);
  });
});
