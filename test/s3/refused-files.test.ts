import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { type Controller, startController } from '../../src/controller/controller.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { openS3 } from '../../src/objects/s3-store.ts';
import { aRunner } from '../support/advance.ts';
import { jobLimits } from '../support/job-limits.ts';
import { admitted, anAccount, storeOf, type TestStore, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { startS3, type TestS3 } from '../support/s3.ts';
import { until } from '../support/until.ts';

const reason = 'The storage of finished files takes no files';

describe('a bucket that takes no file for longer than a worker tries', () => {
  const { lines, log } = aLog();
  let s3: TestS3;
  let redis: TestRedis;
  let store: TestStore;
  let controller: Controller;
  let refusedId: string;
  const runner = aRunner({});

  before(async () => {
    s3 = await startS3();
    redis = await startTestRedis({ fsync: 'always' });
    store = storeOf(redis.connection);
    const objects = openS3({ settings: s3.settings, partBytes: 100, throughEgress: async () => false });
    const see: typeof runner.see = async (name) =>
      name === `${refusedId}-1`
        ? { is: 'ended', outcome: { is: 'failed', code: 'storage_unavailable' } }
        : runner.see(name);
    controller = await startController({
      ...{ store, objects, limits: jobLimits, metrics: makeMetrics(), traces: null, log },
      ...{ shares: sharesOf(10, 0, 30), runners: [runner], runnerOf: () => ({ ...runner, see }) },
    });
  });
  after(async () => {
    await controller.close();
    await redis.stop();
    await s3.stop();
  });

  it('costs a job one attempt, and others none: their downloads begin once it takes files again', async () => {
    const restore = await s3.lose();
    const caller = await anAccount(store, { credits: 10, max_open: 10 });
    refusedId = await admitted(store, caller);
    await until(async () => (await theJob(store, refusedId)).failures === 1, 10, 'its attempt fails');
    store.advance(60_000);
    const others = [await admitted(store, caller), await admitted(store, caller)];
    const ids = [refusedId, ...others];
    for (const id of ids) await until(async () => (await theJob(store, id)).stage === reason, 10, `${id} waits`);
    expect(runner.started).to.deep.equal([`${refusedId}-1`]);
    expect(lines.join('\n')).to.match(/"error".*the object store takes no file: no download begins.*ECONNREFUSED/);
    await restore();
    const names = [`${refusedId}-2`, ...others.map((id) => `${id}-1`)];
    await until(() => names.every((name) => runner.started.includes(name)), 30, 'all begin');
    const jobs = await Promise.all(ids.map((id) => theJob(store, id)));
    expect(jobs.map(({ failures, interruptions }) => [failures, interruptions])).to.deep.equal([
      [1, 0],
      [0, 0],
      [0, 0],
    ]);
    expect(await s3.list()).to.deep.equal({ objects: [], uploads: [] });
  });
});
