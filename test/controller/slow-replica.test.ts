import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { startController } from '../../src/controller/controller.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { aRunner, emptyObjects } from '../support/advance.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { jobLimits } from '../support/job-limits.ts';
import { storeOf } from '../support/record.ts';
import { aLog, startTestPair, type TestPair } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('a controller whose changes reach no replica in time', () => {
  let pair: TestPair;
  before(async () => {
    pair = await startTestPair();
    await pair.connection.send(['CONFIG', 'SET', 'min-replicas-to-write', '0']);
  });
  after(() => pair.stop());

  it('lists the workers of the cluster at most once in five seconds, however often a task fails', async () => {
    const thaw = await freezeProcess(pair.replica.process.pid);
    const metrics = makeMetrics();
    let lists = 0;
    const runner = aRunner({});
    const counted = {
      ...runner,
      list: async () => {
        lists += 1;
        return runner.list();
      },
    };
    const began = performance.now();
    const controller = await startController({
      ...{ store: storeOf(pair.connection), limits: jobLimits, metrics, traces: null, log: aLog().log },
      ...{ shares: sharesOf(1, 0, 30), runners: [counted], runnerOf: () => counted },
      objects: emptyObjects,
    });
    try {
      const failures = async () =>
        (await metrics.upkeep_errors_total.get()).values.reduce((sum, { value }) => sum + value, 0);
      await until(async () => (await failures()) >= 6, 40, 'six failures');
      expect(lists).to.be.within(1, 1 + Math.floor((performance.now() - began) / 5_000));
    } finally {
      thaw();
      await controller.close();
    }
  });
});
