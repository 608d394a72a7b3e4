import { expect } from 'chai';
import { type Metrics, makeMetrics } from '../../src/base/metrics.ts';
import { startController } from '../../src/controller/controller.ts';
import { sharesOf } from '../../src/model/preemption.ts';
import { workRanges } from '../../src/store/jobs/work-ranges.ts';
import { keys } from '../../src/store/keys.ts';
import type { Connection } from '../../src/store/redis/connection.ts';
import { emptyObjects } from '../support/advance.ts';
import { jobLimits } from '../support/job-limits.ts';
import { storeOf } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

/** Tasks that run again and again, where a failure could stay unseen for ever. */
describe('the upkeep of a controller', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());

  const failuresOf = async (metrics: Metrics, task: string) =>
    (await metrics.upkeep_errors_total.get()).values.find(({ labels }) => labels.task === task)?.value ?? 0;

  it('warns and counts when overdue jobs cannot be read, and looks at active ones all the same', async () => {
    const store = storeOf(redis.connection);
    const looked: string[] = [];
    const read: Connection['read'] = async (command) => {
      looked.push(command.slice(1, 3).join(' '));
      if (command[1] === keys.openWork && command[2] === workRanges.queued[0]) throw new Error('no overdue jobs');
      return store.connection.read(command);
    };
    const metrics = makeMetrics();
    const { log, lines } = aLog();
    const controller = await startController({
      ...{
        store: { ...store, connection: { ...store.connection, read } },
        limits: jobLimits,
        metrics,
        traces: null,
        log,
      },
      ...{ shares: sharesOf(1, 0, 30), runners: [], runnerOf: () => expect.fail('there is no job') },
      objects: emptyObjects,
    });
    await until(async () => (await failuresOf(metrics, 'pass')) > 0, 5, 'the failure');
    expect(lines.filter((line) => line.includes('"warn"') && line.includes('the full pass failed'))).to.not.be.empty;
    expect(looked).to.include(`${keys.openWork} ${workRanges.active[0]}`);
    await controller.close();
  });
});
