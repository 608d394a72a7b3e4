import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { JobAdvancer } from '../../src/controller/advance-job.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import type { Runner } from '../../src/runners/runner.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { jobLimits } from '../support/job-limits.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  failed,
  holder,
  storeOf,
  type TestStore,
} from '../support/record.ts';
import { aFolder, aLog, startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const hour = 3_600_000;
const lifetimes = { job: 720 * hour, line: 2160 * hour, file: 24 * hour };

describe('the sweeper', () => {
  let redis: TestRedis;
  let store: TestStore;
  let objects: FolderStore;
  let place: ReturnType<typeof aFolder>;
  let sweeping: ReturnType<typeof startSweeper> | undefined;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());
  beforeEach(async () => {
    await redis.flush();
    store = storeOf(redis.connection);
    place = aFolder();
    objects = await openFolder({ folder: place.folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
  });
  afterEach(async () => {
    await sweeping?.close();
    place.remove();
  });

  const waiting = async () => (await store.connection.read(['ZRANGE', keys.files, '0', '-1'])) as string[];
  const open = (given: Partial<Parameters<typeof startSweeper>[0]> = {}) =>
    startSweeper({ store, objects, lifetimes, isLeading: () => true, log: aLog().log, ...given });
  /** A job whose worker has uploaded its file. */
  const aJobWithAFile = async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const key = `${job.id}/1/media.mp4`;
    await objects.keep(key, Buffer.from('a film'));
    return { job, key };
  };

  it('removes the upload of a cancelled job although the controller died before it could', async () => {
    const { job, key } = await aJobWithAFile();
    const there = new Set([`${job.id}-1`]);
    const runner: Runner = {
      start: async () => {},
      stop: async (name) => void there.delete(name),
      see: async (name) => (there.has(name) ? { is: 'running' } : { is: 'absent' }),
      watch: () => () => {},
      list: async () => [...there],
      close: async () => [],
    };
    const remove = async () => {
      throw new Error('it has died');
    };
    const advancerWith = (removeObjects: FolderStore['remove']) =>
      new JobAdvancer({
        ...{ store, holder, limits: jobLimits, metrics: makeMetrics(), log: aLog().log, runners: [runner] },
        objects: { ...objects, remove: removeObjects },
        runnerOf: () => runner,
        mayStart: () => true,
      });
    await cancelJob(store, job, 'The job was cancelled');
    expect(
      await advancerWith(remove)
        .advance(job.id)
        .catch((error: Error) => error.message),
    ).to.equal('it has died');
    expect([...there]).to.deep.equal([]);
    // Whoever leads next finds nothing to do: the worker is gone.
    await advancerWith(objects.remove).advance(job.id);
    expect(await objects.see(key)).not.to.equal(null);
    sweeping = open();
    sweeping.wake();
    await until(async () => (await objects.see(key)) === null, 5, 'the file to go');
    await until(async () => (await waiting()).length === 0, 5, 'nothing to wait for');
    await sweeping.close();
    expect(existsSync(join(place.folder, job.id))).to.equal(false);
  });

  it('removes files of every job that had an attempt that may upload, and of no other', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const [delivered, without, question] = [
      await aRunningJob(store, caller),
      await aRunningJob(store, caller),
      await aRunningJob(store, caller, { work: { ...aDownload, endpoint: 'metadata' } }),
    ];
    await settleJob(store, holder, delivered, completed);
    for (const job of [without, question]) await settleJob(store, holder, job, failed);
    const id = await admitted(store, caller);
    await cancelJob(store, { ...delivered, id }, 'The job was cancelled');
    // What nobody may fetch goes first, and at once.
    expect(await waiting()).to.deep.equal([without, delivered].map((job) => `${caller.accountId}/${job.id}`));
    const key = keys.files;
    expect(await store.connection.read(['ZCOUNT', key, '0', '0'])).to.satisfy((n: unknown) => Number(n) === 1);
  });

  it('stops after the current file when it is closed', async () => {
    for (let n = 0; n < 3; n++) {
      const { job } = await aJobWithAFile();
      await cancelJob(store, job, 'The job was cancelled');
    }
    const begun = Promise.withResolvers<void>();
    const goesOn = Promise.withResolvers<void>();
    const remove: FolderStore['remove'] = async (prefix) => {
      begun.resolve();
      await goesOn.promise;
      await objects.remove(prefix);
    };
    sweeping = open({ objects: { ...objects, remove } });
    sweeping.wake();
    await begun.promise;
    const closed = sweeping.close();
    goesOn.resolve();
    await closed;
    expect(await waiting()).to.have.length(2);
  });

  it('stops when its controller leads no more', async () => {
    for (let n = 0; n < 3; n++) {
      const { job } = await aJobWithAFile();
      await cancelJob(store, job, 'The job was cancelled');
    }
    let leads = true;
    const remove: FolderStore['remove'] = async (prefix) => {
      leads = false;
      await objects.remove(prefix);
    };
    sweeping = open({ objects: { ...objects, remove }, isLeading: () => leads });
    sweeping.wake();
    await until(async () => (await waiting()).length === 2, 5, 'one file to go');
    await sweeping.close();
    expect(await waiting()).to.have.length(2);
  });
});
