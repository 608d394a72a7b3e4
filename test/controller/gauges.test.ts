import { expect } from 'chai';
import { makeLog } from '../../src/base/log.ts';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { startGauges } from '../../src/controller/gauges.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { admitted, anAccount, storeOf, type TestStore, theJob } from '../support/record.ts';
import { aLog, startTestRedis, type TestRedis } from '../support/redis.ts';

describe('gauges of the record', () => {
  let redis: TestRedis;
  let store: TestStore;
  before(async () => {
    redis = await startTestRedis();
    store = storeOf(redis.connection);
  });
  after(() => redis.stop());

  const log = makeLog({ level: 'error', write: () => {}, now: Date.now });
  const begin = (isLeading: boolean, oldestUnsettled: () => number | null = () => null) => {
    const metrics = makeMetrics();
    return { metrics, gauges: startGauges({ store, metrics, isLeading: () => isLeading, oldestUnsettled, log }) };
  };

  it('show the holds and the queue at the time of the scrape', async () => {
    const { metrics, gauges } = begin(true);
    const caller = await anAccount(store, { credits: 2 });
    const id = await admitted(store, caller);
    expect(await renderMetrics(metrics))
      .to.match(/^trawl_holds_open 1$/m)
      .and.match(/^trawl_jobs_open\{state="queued"\} 1$/m);
    await cancelJob(store, await theJob(store, id), 'Cancelled');
    expect(await renderMetrics(metrics))
      .to.match(/^trawl_holds_open 0$/m)
      .and.match(/^trawl_jobs_open\{state="queued"\} 0$/m);
    await gauges.close();
    expect(metrics.refreshers.size).to.equal(0);
  });

  it('show the age of the oldest unsettled job, and 0 for none', async () => {
    let since: number | null = store.clock.now() - 90_000;
    const { metrics, gauges } = begin(true, () => since);
    expect(await renderMetrics(metrics)).to.match(/^trawl_oldest_unsettled_seconds 9\d(\.\d+)?$/m);
    since = null;
    expect(await renderMetrics(metrics)).to.match(/^trawl_oldest_unsettled_seconds 0$/m);
    await gauges.close();
  });

  it('that cannot be read are a warning and a count, never silence', async () => {
    const { lines, log } = aLog();
    const metrics = makeMetrics();
    const broken: TestStore = {
      ...store,
      connection: { ...redis.connection, eval: () => Promise.reject(new Error('no')) },
    };
    const gauges = startGauges({ store: broken, metrics, isLeading: () => true, oldestUnsettled: () => null, log });
    expect(await renderMetrics(metrics)).to.match(/^trawl_upkeep_errors_total\{task="gauges"\} 1$/m);
    expect(lines.filter((line) => line.includes('"warn"') && line.includes('gauges could not be read'))).to.have.length(
      1,
    );
    await gauges.close();
  });

  it('are absent where another controller leads', async () => {
    const { metrics, gauges } = begin(false);
    expect(await renderMetrics(metrics)).not.to.match(/^trawl_holds_open /m);
    await gauges.close();
  });
});
