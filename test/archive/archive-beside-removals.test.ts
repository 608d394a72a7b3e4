import { dirname } from 'node:path';
import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { listArchivedParts } from '../../src/store/log/archived-parts.ts';
import { ledgerStream } from '../../src/store/log/read-ledger.ts';
import { freeLineStream, paidLineStream } from '../../src/store/log/read-lines.ts';
import { type LoggedKey, openRequestLog } from '../../src/store/log/write-lines.ts';
import { findJobEntry } from '../../src/store/money/ledger-entry.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { freeLine } from '../support/free-line.ts';
import { anOldAccount, objectsIn } from '../support/old-account.ts';
import { anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day, line: 90 * day, file: day };

describe('archiving beside removals', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  const addLine = async (caller: LoggedKey) => {
    const lines = openRequestLog(store, 50_000, aLog().log);
    lines.add(caller, { ...freeLine, at: store.clock.now() });
    await lines.close();
  };

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
      await cancelJob(store, job);
      sweeping.wake();
      await until(async () => (await objects.see(key)) === null, 5, 'the file to go').finally(goesOn.resolve);
      const isMoved = async () => (await listArchivedParts(store, ledgerStream(account.accountId))).length > 0;
      await until(isMoved, 5, 'the ledger to be moved');
    } finally {
      await sweeping.close();
      remove();
    }
  });

  it('leaves the ledger entry of a job in the record for as long as the job, which stays with a file that is kept for longer', async () => {
    const { folder, remove } = aFolder();
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    const caller = await anAccount(store, { credits: 1 });
    const job = await aRunningJob(store, caller);
    await settleJob(store, holder, job, completed);
    store.advance(70 * day);
    const sweeping = startSweeper({
      ...{ store, objects, lifetimes: { ...lifetimes, file: 90 * day }, isLeading: () => true, metrics: makeMetrics() },
      ...{ probe: { isAway: () => false, check: async () => true }, log: aLog().log },
    });
    try {
      sweeping.wake();
      const isMoved = async () => (await listArchivedParts(store, paidLineStream(caller.keyId))).length > 0;
      await until(isMoved, 5, 'its line of the request log to be moved');
    } finally {
      await sweeping.close();
      remove();
    }
    expect((await findJobEntry(store, (await readJob(store, job.id))!))?.kind).to.equal('charge');
  });

  it('leaves no object that no part names when the newest part of a key expires while its lines are archived', async () => {
    const { folder, remove } = aFolder();
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    const caller = await anAccount(store);
    const origin = freeLineStream(caller.keyId);
    store.advanceToNoon();
    await addLine(caller);
    store.advance(2 * day);
    await archiveDays({ store, objects, lifetimes, goOn: () => true, metrics: makeMetrics(), log: aLog().log });
    expect(await listArchivedParts(store, origin)).to.have.length(1);
    store.advance(85 * day);
    await addLine(caller);
    store.advance(2 * day);
    const [begun, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const keep: FolderStore['keep'] = async (key, body) => {
      if (key.startsWith('days/free/')) {
        begun.resolve();
        await goesOn.promise;
      }
      await objects.keep(key, body);
    };
    const { log, lines } = aLog();
    const sweeping = startSweeper({
      ...{ store, objects: { ...objects, keep }, lifetimes, isLeading: () => true, metrics: makeMetrics() },
      ...{ probe: { isAway: () => false, check: async () => true }, log },
    });
    try {
      sweeping.wake();
      await begun.promise;
      // The part expires now; the file below shows that the removals beside the archive are over.
      store.advance(2 * day);
      const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
      await objects.keep(`${job.id}/1/media.mp4`, Buffer.from('a film'));
      await cancelJob(store, job);
      sweeping.wake();
      await until(() => lines.some((line) => line.includes('"files":1')), 5, 'the removals').finally(goesOn.resolve);
      await until(() => lines.some((line) => line.includes('were moved')), 5, 'the lines to be moved');
      const named = (await listArchivedParts(store, origin)).map(({ object }) => object);
      const kept = objectsIn(folder).filter((path) => path.startsWith('days/free/'));
      expect(kept.map(dirname)).to.deep.equal(named);
    } finally {
      await sweeping.close();
      remove();
    }
  });

  it('goes on with the archive of a day that it began before its controller lost the lead', async () => {
    const { folder, remove } = aFolder();
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    const callers = [await anAccount(store), await anAccount(store)];
    store.advanceToNoon();
    for (const caller of callers) await addLine(caller);
    store.advance(2 * day);
    const { log, lines } = aLog();
    let [isFirst, leads] = [true, true];
    const keep: FolderStore['keep'] = async (key, body) => {
      if (isFirst) leads = false;
      isFirst = false;
      await objects.keep(key, body);
    };
    const sweeping = startSweeper({
      ...{ store, objects: { ...objects, keep }, lifetimes, isLeading: () => leads, metrics: makeMetrics() },
      ...{ probe: { isAway: () => false, check: async () => true }, log },
    });
    const countParts = async () => {
      const parts = await Promise.all(callers.map(({ keyId }) => listArchivedParts(store, freeLineStream(keyId))));
      return parts.flat().length;
    };
    try {
      sweeping.wake();
      await until(() => lines.some((line) => line.includes('were moved')), 5, 'the lines of one to be moved');
      expect(await countParts()).to.equal(1);
      leads = true;
      const goesOn = async () => {
        sweeping.wake();
        return (await countParts()) === 2;
      };
      await until(goesOn, 5, 'those of the other one to be moved');
    } finally {
      await sweeping.close();
      remove();
    }
  });
});
