import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { listArchivedParts } from '../../src/store/log/archived-parts.ts';
import { ledgerStream } from '../../src/store/log/read-ledger.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { anOldAccount } from '../support/old-account.ts';
import { anAccount, aRunningJob, type TestStore } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day, line: 90 * day, file: day };

describe('archiving beside removals', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  it('removes files while days are archived, which takes long where many keys were used', async () => {
    const { folder, remove } = aFolder();
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    const account = await anOldAccount(store);
    const [begun, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const keep: FolderStore['keep'] = async (key, body) => {
      begun.resolve();
      await goesOn.promise;
      await objects.keep(key, body);
    };
    const sweeping = startSweeper({
      ...{ store, objects: { ...objects, keep }, lifetimes, isLeading: () => true, metrics: makeMetrics() },
      ...{ probe: { isAway: () => false, check: async () => true }, log: aLog().log },
    });
    try {
      sweeping.wake();
      await begun.promise;
      const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
      const key = `${job.id}/1/media.mp4`;
      await objects.keep(key, Buffer.from('a film'));
      await cancelJob(store, job, 'The job was cancelled');
      sweeping.wake();
      await until(async () => (await objects.see(key)) === null, 5, 'the file to go').finally(goesOn.resolve);
      const isMoved = async () => (await listArchivedParts(store, ledgerStream(account.accountId))).length > 0;
      await until(isMoved, 5, 'the ledger to be moved');
    } finally {
      await sweeping.close();
      remove();
    }
  });
});
