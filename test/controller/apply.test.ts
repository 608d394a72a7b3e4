import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeApply } from '../../src/controller/apply.ts';
import type { Runner } from '../../src/runners/runner.ts';
import { someDelivered, someMetadata } from '../support/jobs.ts';
import { anAccount, aRunningJob, holder, storeOf, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';

const hour = 3_600_000;
const limits = {
  attempts: 3,
  interruptions: 10,
  queueMilliseconds: 24 * hour,
  storingMilliseconds: 24 * hour,
  jobMilliseconds: hour,
};

describe('the next step of a job, carried out', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  it('D75: a file whose store is away is waited for, and the job completes when it is back', async () => {
    const store = storeOf(redis.connection);
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const delivered = { ...someDelivered(1), key: `${job.id}/1/media.mp4` };
    const stopped: string[] = [];
    const runner: Runner = {
      start: async () => {},
      stop: async (name) => void stopped.push(name),
      see: async () => ({ is: 'ended', outcome: { is: 'done', metadata: someMetadata, delivered } }),
      watch: () => () => {},
      list: async () => [],
    };
    let isAway = true;
    const see = async () => {
      if (isAway) throw new Error('the store is away');
      return { bytes: delivered.bytes, checksum: delivered.sha256 };
    };
    const apply = makeApply({
      ...{ store, holder, limits, metrics: makeMetrics(), log: aLog().log },
      objects: { finish: async () => {}, see, remove: async () => {} },
      runnerOf: () => runner,
      forget: () => {},
      mayStart: () => true,
    });
    // The first look at a worker that has ended says that it ran.
    await apply(job.id);
    expect(await apply(job.id)).to.be.above(0);
    expect(await theJob(store, job.id)).to.deep.include({ status: 'Running', delivered });
    expect(stopped).to.deep.equal([]);
    isAway = false;
    await apply(job.id);
    expect(await theJob(store, job.id)).to.deep.include({ status: 'CompletedJob', delivered });
    expect(stopped).to.deep.equal([`${job.id}-1`]);
  });
});
