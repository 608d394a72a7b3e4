import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { archiveDays, removeArchivedDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { removeDueFiles, removeStrayObjects } from '../../src/controller/file-cleaner.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { readRevocations, removeRevocations, revocationLifeMs, revoke } from '../../src/objects/revocations.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { endBatch } from '../../src/store/batches/end-batch.ts';
import { dropFile, readFileTimes } from '../../src/store/jobs/kept-files.ts';
import { noteProgress } from '../../src/store/jobs/note-progress.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { listUnknownJobs } from '../../src/store/jobs/stray-objects.ts';
import { keys, shortId } from '../../src/store/keys.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { readRedisTime } from '../../src/store/old-entries.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { anAdmittedBatch, cancelJobs } from '../support/batch-scenarios.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { admitted, anAccount, aRunningJob, completed, holder, type TestStore, theJob } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';

const day = 86_400_000;
const halfDay = day / 2;
const lifetimes = { job: 30 * day, line: 90 * day, file: day };
const strayMs = 7 * day;
const goOn = () => true;
const fail = (error: unknown) => Promise.reject(error);

/** Brings an entry to half a day before its removal; returns a check that it is there. */
type Row = (store: TestStore, objects: FolderStore) => Promise<() => Promise<boolean>>;

/** An entry of a sorted set whose score says how old it is. */
const scored =
  (key: string, member: () => string, ageMs: number): Row =>
  async (store) => {
    const name = member();
    await store.connection.send(['ZADD', key, String(store.clock.now() - ageMs + halfDay), name]);
    return async () => (await store.connection.read(['ZSCORE', key, name])) !== null;
  };

const aLine: Row = async (store) => {
  const caller = await anAccount(store, { credits: 1 });
  await settleJob(store, holder, await aRunningJob(store, caller), completed);
  return async () => Number(await store.connection.send(['XLEN', keys.paidLines(caller.keyId)])) === 1;
};

const anEndedJob = async (store: TestStore) => {
  const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
  await settleJob(store, holder, job, completed);
  return job;
};

const rows: Readonly<Record<string, Row>> = {
  'the hold of a synchronous call': async (store) => {
    const caller = await anAccount(store, { credits: 1 });
    await admitted(store, caller, { work: { holdMs: halfDay } });
    return async () => (await store.connection.read(['HGET', keys.account(caller.accountId), 'held'])) === '1';
  },
  'an ended job': async (store) => {
    const { id } = await anEndedJob(store);
    await dropFile(store, id);
    store.advance(lifetimes.job - halfDay);
    return async () => (await readJob(store, id)) !== null;
  },
  'an ended batch': async (store) => {
    const { id } = await anAdmittedBatch(store, await anAccount(store, { credits: 9 }), 1);
    await cancelJobs(store, id);
    await endBatch(store, id);
    store.advance(lifetimes.job - halfDay);
    return async () => (await store.connection.read(['ZSCORE', keys.endedBatches, id])) !== null;
  },
  'a request-log line': async (store, objects) => {
    const isThere = await aLine(store, objects);
    store.advance(lifetimes.line - halfDay);
    // The archive may have it meanwhile.
    return async () => (await isThere()) || (await store.connection.read(['ZCARD', keys.days])) > 0;
  },
  'the block of an address': scored(keys.blocks, () => '192.0.2.7', 0),
  'the failures of an address': async (store) => {
    await countAuthFailure(store, '192.0.2.8', { maxFailures: 3, windowMs: day, blockMs: day });
    store.advance(2 * day - halfDay);
    return async () => (await store.connection.read(['HGET', keys.failures, '192.0.2.8'])) !== null;
  },
  'an unsent mail': async (store) => {
    const at = store.clock.now() - 7 * day + halfDay;
    await store.connection.send(['HSET', keys.outbox, 'a-mail', JSON.stringify({ at, attempts: 0 })]);
    await store.connection.send(['ZADD', keys.outboxDue, String(at), 'a-mail']);
    return async () => (await store.connection.read(['HGET', keys.outbox, 'a-mail'])) !== null;
  },
  'a file': async (store, objects) => {
    const { id } = await anEndedJob(store);
    await objects.keep(`${id}/1/media.mp4`, Buffer.from('a film'));
    store.advance(lifetimes.file - halfDay);
    return async () =>
      (await objects.see(`${id}/1/media.mp4`)) !== null && (await readFileTimes(store, [id]))[0] !== null;
  },
  'an object that the record does not know': async (store, objects) => {
    const id = randomUUID();
    await objects.keep(`${id}/1/media.mp4`, Buffer.from('a film'));
    await listUnknownJobs(store, Readable.from([[id]]));
    store.advance(lifetimes.file + strayMs - halfDay);
    return async () => (await objects.see(`${id}/1/media.mp4`)) !== null;
  },
  'an archived part of a request log': scored(keys.days, () => `free/${'a'.repeat(24)}/0-0`, lifetimes.line),
  'an archived part of an audit log': scored(keys.auditParts, () => 'audit/one/0-0', 365 * day),
  'a day of the request log that is to be archived': async (store, objects) => {
    store.advanceToNoon();
    const isThere = await aLine(store, objects);
    store.advance(day);
    return isThere;
  },
  'a day of revocations': async (store, objects) => {
    store.advanceToNoon();
    // Days count: the last one has ended half a day before its removal.
    const at = store.clock.now() - revocationLifeMs - day;
    const revocation = { kind: 'account', account: 'one' } as const;
    await revoke(
      async () => objects,
      at,
      revocation,
      async () => {},
    );
    return async () => (await readRevocations(objects, 0)).length === 1;
  },
};

/** What its process takes for the time, and what a script sees, after TIME has jumped since it was read. */
const jumps: Readonly<Record<string, (store: TestStore) => RecordStore>> = {
  back: (store) => ({ ...store, clock: { ...store.clock, now: () => store.clock.now() + day } }),
  forward: (store) => ({ ...store, clock: { ...store.clock, offset: () => store.clock.offset() + day } }),
};

describe('after the clock of Redis has moved by a day since the controller read it', () => {
  let store: TestStore;
  let objects: FolderStore;
  let place: ReturnType<typeof aFolder>;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  beforeEach(async () => {
    place = aFolder();
    objects = await openFolder({ folder: place.folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
  });
  afterEach(() => place.remove());

  const sweep = async (moved: RecordStore) => {
    const [metrics, log] = [makeMetrics(), aLog().log];
    const cleaner = { store: moved, objects, probe: { check: async () => true }, metrics, log, goOn };
    await sweepRecord(moved, lifetimes);
    await removeDueFiles(cleaner, lifetimes.file);
    await removeStrayObjects(cleaner, lifetimes.file);
    await removeArchivedDays(moved, objects, lifetimes.line, goOn, fail);
    await archiveDays({ store: moved, objects, lifetimes, goOn, metrics, log });
    await removeRevocations(objects, async () => (await readRedisTime(moved)) - revocationLifeMs, goOn, fail);
  };

  for (const [what, prepare] of Object.entries(rows)) {
    it(`${what} stays until its time, and goes then`, async () => {
      const isThere = await prepare(store, objects);
      for (const [way, moved] of Object.entries(jumps)) {
        await sweep(moved(store));
        expect(await isThere(), `after it moved ${way}`).to.equal(true);
      }
      store.advance(day);
      await sweep(store);
      expect(await isThere(), 'in time').to.equal(false);
    });
  }

  it('days are archived neither early by TIME of the moment in which they leave Redis', async () => {
    store.advanceToNoon();
    const isThere = await aLine(store, objects);
    store.advance(day);
    let readings = 0;
    const read: RecordStore['connection']['read'] = async (command) => {
      if (command[0] !== 'TIME') return store.connection.read(command);
      readings++;
      return [String(Math.floor((Date.now() + day) / 1000)), '0'] as never;
    };
    const moved = { ...store, ...jumps.back?.(store), connection: { ...store.connection, read } };
    await archiveDays({ store: moved, objects, lifetimes, goOn, metrics: makeMetrics(), log: aLog().log });
    expect([readings, await isThere()]).to.deep.equal([1, true]);
  });

  it('the deadline of an attempt is that of Redis', async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const moved = jumps.back?.(store) ?? store;
    const told = { progress: 0, stage: 'inspect', speed_bytes: null, eta_seconds: null, lastsMs: 60_000 };
    await noteProgress(moved, job, 1, told);
    const { deadline } = await theJob(store, job.id);
    expect(deadline).to.be.within(store.clock.now() - 30_000, store.clock.now() + 60_000);
  });

  it('an object that the record does not know is noted with the time of Redis', async () => {
    const id = randomUUID();
    const behind = { ...store, clock: { ...store.clock, now: () => store.clock.now() - day } };
    await listUnknownJobs(behind, Readable.from([[id]]));
    const at = Number(await store.connection.read(['ZSCORE', keys.strays, shortId(id)]));
    expect(at).to.be.within(store.clock.now() - 60_000, store.clock.now());
  });

  it('an account goes into the billing period of today, and not into the next one', async () => {
    const { accountId } = await anAccount(store, { quota: 2 });
    const period = async () => {
      const [start, end] = await store.connection.read([
        'HMGET',
        keys.account(accountId),
        'period_start',
        'period_end',
      ]);
      return { start: Number(start), end: Number(end) };
    };
    const first = await period();
    // Within the last half day of the period that follows.
    store.advance(first.end - store.clock.now());
    const { end } = await rollPeriod(store, accountId).then(period);
    await store.connection.send(['HSET', keys.account(accountId), 'period_end', String(first.end - 1)]);
    store.advance(end - halfDay - store.clock.now());
    expect(await rollPeriod(jumps.back?.(store) ?? store, accountId)).to.equal(true);
    expect((await period()).start).to.be.below(store.clock.now());
  });

  it('unfinished uploads go by the earlier of both times', async () => {
    const asked = Promise.withResolvers<number>();
    const sweepTemporary = async (before: number) => {
      asked.resolve(before);
      return 0;
    };
    const clock = { now: () => Date.now() + day, isSteady: () => true, machineAheadMs: () => 0 };
    const connection = { ...store.connection, clock };
    const sweeping = startSweeper({
      ...{ store: { ...store, connection }, lifetimes, isLeading: () => true, metrics: makeMetrics(), log: aLog().log },
      objects: { ...objects, sweepTemporary },
      probe: { isAway: () => false, check: async () => true },
    });
    sweeping.wake();
    const before = await asked.promise;
    await sweeping.close();
    expect(before).to.be.at.most(Date.now() - 2 * day);
  });
});
