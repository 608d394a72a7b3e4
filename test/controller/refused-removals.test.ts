import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anAccount, aRunningJob, type TestStore } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const hour = 3_600_000;
const lifetimes = { job: 720 * hour, line: 2160 * hour, file: 24 * hour };

describe('tens of thousands of files that cannot be removed', () => {
  let store: TestStore;
  let sweeper: ReturnType<typeof startSweeper> | undefined;
  const place = aFolder();
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  afterEach(() => sweeper?.close());
  after(() => place.remove());

  it('do not keep a sweep from the search for stray objects, and it counts none of them as removed', async () => {
    const { folder } = place;
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    // One more than is removed at once.
    for (let n = 0; n < 17; n++)
      await cancelJob(store, await aRunningJob(store, await anAccount(store, { credits: 1 })));
    await objects.keep(`${randomUUID()}/1/media.mp4`, Buffer.from('a film'));
    const [{ log, lines }, metrics] = [aLog(), makeMetrics()];
    const remove: FolderStore['remove'] = async () => {
      // Where tens of thousands are refused, the first one is due again before the last one was tried.
      store.advance(600_001);
      throw new Error('it is locked');
    };
    const probe = { isAway: () => false, check: async () => true };
    sweeper = startSweeper({
      ...{ store, lifetimes, isLeading: () => true, probe, metrics, log },
      objects: { ...objects, remove },
    });
    sweeper.wake();
    const isFound = async () => (await renderMetrics(metrics)).includes('trawl_stray_objects 1');
    await until(isFound, 5, 'the stray object to be found');
    expect(await renderMetrics(metrics)).to.include('trawl_removal_errors_total 16');
    expect(lines.filter((line) => line.includes('"files"'))).to.deep.equal([]);
  });
});
