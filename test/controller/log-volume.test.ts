import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { noteFailedSteps } from '../../src/controller/failed-steps.ts';
import { StorageLane } from '../../src/controller/storage-lane.ts';
import { StorageProbe } from '../../src/controller/storage-probe.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { keys } from '../../src/store/keys.ts';
import { emptyObjects } from '../support/advance.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, aRunningJob, type TestStore } from '../support/record.ts';
import { aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const hour = 3_600_000;
const maxLines = 10;

describe('a fault that many jobs meet', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('is ten lines a minute for steps of 150 jobs that fail again and again, and each of them is counted', async () => {
    const [metrics, { lines, log }] = [makeMetrics(), aLog()];
    const note = noteFailedSteps({ metrics, log });
    for (let n = 0; n < 1_800; n++) note(`job ${n % 150}`, new Error('The API server does not answer'));
    expect(lines).to.have.length(maxLines);
    expect((await metrics.reconcile_errors_total.get()).values[0]?.value).to.equal(1_800);
  });

  it('is ten lines a minute for calls of the object store that fail', async () => {
    const { lines, log } = aLog();
    const probe = new StorageProbe({ objects: emptyObjects, metrics: makeMetrics(), log });
    const lane = new StorageLane({ probe, log, again: () => undefined });
    for (let n = 0; n < 40; n++)
      lane.add(`job ${n}`, () => Promise.reject(new Error('S3 answered AccessDenied (403)')));
    await lane.settled();
    lane.close();
    probe.close();
    expect(lines).to.have.length(maxLines);
  });

  /** Begins a sweep of an object store that removes nothing, and that has one object which the record does not know. */
  const sweepStuck = () => {
    const [metrics, { lines, log }] = [makeMetrics(), aLog()];
    const remove = () => Promise.reject(new Error('S3 answered AccessDenied (403)'));
    const listNames = async function* (prefix?: string) {
      if (prefix === undefined) yield [randomUUID()];
    };
    const sweeper = startSweeper({
      ...{ store, metrics, log, isLeading: () => true, probe: { isAway: () => false, check: async () => true } },
      lifetimes: { job: 720 * hour, line: 2160 * hour, file: 24 * hour },
      objects: { remove, sweepTemporary: async () => 0, listNames } as never,
    });
    sweeper.wake();
    return { metrics, lines, close: () => sweeper.close() };
  };

  describe('of files that cannot be removed', () => {
    /** Sweeps 20 files that stay, until all of it was tried and a line is written. */
    const sweep = async (last: string) => {
      for (let n = 0; n < 20; n++)
        await cancelJob(store, await aRunningJob(store, await anAccount(store, { credits: 1 })));
      const { metrics, lines, close } = sweepStuck();
      const count = async () => (await metrics.removal_errors_total.get()).values[0]?.value;
      await until(async () => (await count()) === 20, 20, 'each file was tried and counted');
      await until(() => lines.some((line) => line.includes(last)), 20, `a line with "${last}"`);
      await close();
      return lines;
    };

    it('is ten lines a minute, and each file is counted', async () => {
      const lines = await sweep('could not be removed');
      expect(lines.filter((line) => line.includes('a file could not be removed'))).to.have.length(maxLines);
    });

    it('does not hide the only line of a day about objects that the record does not know', async () => {
      await sweep('objects that the record does not know');
    });
  });

  it('is ten lines a minute for archived days that cannot be removed, and each of them is counted', async () => {
    for (let n = 0; n < 20; n++)
      await store.connection.send(['ZADD', keys.days, String(n), `free/${'a'.repeat(24)}/${n}-0`]);
    const { metrics, lines, close } = sweepStuck();
    const show = () => renderMetrics(metrics);
    const isCounted = async () => (await show()).includes('trawl_upkeep_errors_total{task="sweep"} 20');
    await until(isCounted, 20, 'each day was tried and counted').finally(close);
    expect(lines.filter((line) => line.includes('a sweep failed'))).to.have.length(maxLines);
  });
});
