import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { readRevocations, revoke } from '../../src/objects/revocations.ts';
import type { Runner } from '../../src/runners/runner.ts';
import { readSnapshot } from '../../src/store/accounts/read-snapshot.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { dropFile, readFileTimes } from '../../src/store/jobs/kept-files.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { readLedger } from '../../src/store/log/read-ledger.ts';
import { advanceWith } from '../support/advance.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import {
  aDownload,
  admitted,
  anAccount,
  aRunningJob,
  completed,
  failed,
  holder,
  lead,
  type TestStore,
} from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const hour = 3_600_000;
/** An object store that answers. */
const answering = { isAway: () => false, check: async () => true };
const lifetimes = { job: 720 * hour, line: 2160 * hour, file: 24 * hour };

describe('the sweeper', () => {
  let store: TestStore;
  let objects: FolderStore;
  let place: ReturnType<typeof aFolder>;
  let sweeping: ReturnType<typeof startSweeper> | undefined;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  beforeEach(async () => {
    place = aFolder();
    objects = await openFolder({ folder: place.folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
  });
  afterEach(async () => {
    await sweeping?.close();
    place.remove();
  });

  const waiting = () => store.connection.read(['ZRANGEBYSCORE', keys.ended, '-inf', '(0']);
  const timesOf = (...jobs: readonly { id: string }[]) =>
    readFileTimes(
      store,
      jobs.map(({ id }) => id),
    );
  const open = (given: Partial<Parameters<typeof startSweeper>[0]> = {}) =>
    startSweeper({
      ...{ store, objects, lifetimes, isLeading: () => true, metrics: makeMetrics(), log: aLog().log },
      probe: answering,
      ...given,
    });
  /** One that sweeps at once. */
  const woken = (given: Parameters<typeof open>[0] = {}) => {
    const begun = open(given);
    begun.wake();
    return begun;
  };
  /** A job whose worker has uploaded its file. */
  const aJobWithAFile = async () => {
    const job = await aRunningJob(store, await anAccount(store, { credits: 1 }));
    const key = `${job.id}/1/media.mp4`;
    await objects.keep(key, Buffer.from('a film'));
    return { job, key };
  };

  it('warns and counts an account whose period cannot be rolled, and sweeps the others', async () => {
    const [broken, caller] = [await anAccount(store, { quota: 1 }), await anAccount(store, { quota: 1 })];
    await store.connection.send(['SET', keys.account(broken.accountId), 'no hash']);
    store.advance(40 * 24 * hour);
    const [{ lines, log }, metrics] = [aLog(), makeMetrics()];
    sweeping = woken({ log, metrics });
    const rolled = async () => (await readLedger(store, caller.accountId, 9)).some(({ kind }) => kind === 'lapse');
    const failures = async () =>
      (await metrics.upkeep_errors_total.get()).values.find(({ labels }) => labels.task === 'sweep')?.value ?? 0;
    await until(async () => (await rolled()) && (await failures()) > 0, 5, 'the period of the other account to roll');
    await sweeping.close();
    expect(await failures()).to.equal(1);
    expect(lines.filter((line) => line.includes('a sweep failed') && line.includes('"warn"'))).to.have.length(1);
  });

  it('keeps what was revoked for 400 days, longer than the request log: a backup may be as old', async () => {
    const at = (days: number) => store.clock.now() - days * 24 * hour;
    for (const days of [403, 402, 398, 91]) {
      const revocation = { kind: 'key', account: 'one', key: String(days), ends: at(days) } as const;
      await revoke(
        async () => objects,
        at(days),
        revocation,
        async () => {},
      );
    }
    sweeping = woken();
    const left = async () => (await readRevocations(objects, 0)).map((one) => one.kind === 'key' && one.key);
    await until(async () => !(await left()).includes('402'), 5, 'the oldest to be removed');
    await sweeping.close();
    expect(await left()).to.deep.equal(['398', '91']);
  });

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
    await cancelJob(store, job);
    await advanceWith(store, runner, { objects: { ...objects, remove } })(job.id);
    expect([...there]).to.deep.equal([]);
    // The next leader finds nothing to do: the worker is gone.
    await advanceWith(store, runner, { objects })(job.id);
    expect(await objects.see(key)).not.to.equal(null);
    sweeping = woken();
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
    await cancelJob(store, { ...delivered, id });
    // Files that no caller may fetch are removed first, and at once.
    const [ofWithout, ofDelivered, ...ofOthers] = await timesOf(without, delivered, question, { id });
    expect([ofWithout, ofOthers]).to.deep.equal([0, [null, null]]);
    expect(ofDelivered).to.be.above(0);
  });

  it('removes 16 files at once, and stops after these when it is closed', async () => {
    for (let n = 0; n < 18; n++) await aCancelledJob();
    const goesOn = Promise.withResolvers<void>();
    let begun = 0;
    const remove: FolderStore['remove'] = async (prefix) => {
      begun += 1;
      await goesOn.promise;
      await objects.remove(prefix);
    };
    sweeping = woken({ objects: { ...objects, remove } });
    await until(() => begun === 16, 5, 'files to be removed at once');
    const closed = sweeping.close();
    goesOn.resolve();
    await closed;
    expect(await waiting()).to.have.length(2);
  });

  const aCancelledJob = async () => {
    const made = await aJobWithAFile();
    await cancelJob(store, made.job);
    return made;
  };

  it('removes every other file although one cannot be removed, and tries that one again 10 minutes later', async () => {
    const [stuck, ...others] = [await aCancelledJob(), await aCancelledJob(), await aCancelledJob()];
    const metrics = makeMetrics();
    let isLocked = true;
    const remove: FolderStore['remove'] = async (prefix) => {
      if (isLocked && prefix === `${stuck!.job.id}/`) throw new Error('it is locked');
      await objects.remove(prefix);
    };
    sweeping = woken({ objects: { ...objects, remove }, metrics });
    const left = () => Promise.all(others.map(async ({ key }) => (await objects.see(key)) === null));
    await until(async () => !(await left()).includes(false), 5, 'the other files to go');
    const isTold = async () => (await renderMetrics(metrics)).includes('trawl_removal_errors_total 1');
    await until(isTold, 5, 'the file that cannot be removed to be counted');
    await until(async () => (await waiting()).length === 1, 5, 'one file to wait');
    await sweeping.close();
    isLocked = false;
    sweeping = woken({ objects: { ...objects, remove } });
    await sweeping.close();
    expect(await objects.see(stuck!.key)).not.to.equal(null);
    store.advance(600_000);
    sweeping = woken({ objects: { ...objects, remove } });
    await until(async () => (await objects.see(stuck!.key)) === null, 5, 'the file to go');
  });

  it('blames no file while the object store is away, reports that once, and sweeps the record meanwhile', async () => {
    const [{ job }, gone] = [await aCancelledJob(), await aCancelledJob()];
    const account = await anAccount(store, { credits: 1 });
    await admitted(store, account, { work: { holdMs: 1 } });
    const { promise, reject } = Promise.withResolvers<void>();
    const probe = { isAway: () => false, check: async () => false };
    const { log, lines } = aLog();
    const remove: FolderStore['remove'] = (prefix) => (prefix === `${job.id}/` ? promise : objects.remove(prefix));
    sweeping = open({ objects: { ...objects, remove }, probe, log });
    store.advance(1);
    sweeping.wake();
    const held = async () => (await readSnapshot(store, account.accountId)).balances.held;
    await until(async () => (await held()) === 0, 5, 'the hold to be released');
    await until(async () => (await objects.see(gone.key)) === null, 5, 'the other file to go');
    reject(new Error('it is away'));
    await sweeping.close();
    expect(await waiting()).to.have.length(1);
    expect(lines.filter((line) => line.includes('a sweep failed'))).to.have.length(1);
  });

  it('removes nothing while the clock of Redis is not steady', async () => {
    const { key } = await aCancelledJob();
    const account = await anAccount(store, { credits: 1 });
    await admitted(store, account, { work: { holdMs: 1 } });
    store.advance(1000 * hour);
    let isSteady = false;
    const looks: boolean[] = [];
    const look = () => looks.push(isSteady) > 0 && isSteady;
    const clock = { ...store.connection.clock, isSteady: look, machineAheadMs: () => 0, now: Date.now };
    const jumping = { ...store, connection: { ...store.connection, clock } };
    sweeping = woken({ store: jumping });
    // One that is closed removes nothing either.
    await until(() => looks.length >= 2, 5, 'the sweeps of record and files ask');
    await sweeping.close();
    expect(await objects.see(key)).not.to.equal(null);
    expect((await readSnapshot(store, account.accountId)).balances.held).to.equal(1);
    isSteady = true;
    sweeping = woken({ store: jumping });
    await until(async () => (await objects.see(key)) === null, 5, 'the file to go');
  });

  it('removes objects that the record does not know a lifetime and a week after it found them, and no others', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const [running, delivered, swept] = [
      await aRunningJob(store, caller),
      await aRunningJob(store, caller),
      await aRunningJob(store, caller),
    ];
    await settleJob(store, holder, swept, completed);
    await dropFile(store, swept.id);
    const unknown = randomUUID();
    const ids = [running.id, delivered.id, swept.id, unknown];
    for (const id of ids) await objects.keep(`${id}/1/media.mp4`, Buffer.from('a film'));
    await objects.keep('days/paid/x/0/lines.gz', Buffer.from('lines'));
    const there = async () => {
      const seen = await Promise.all(ids.map((id) => objects.see(`${id}/1/media.mp4`)));
      return ids.filter((_, n) => seen[n] !== null);
    };
    const long = { ...lifetimes, file: 1000 * hour };
    const sweepOnce = async () => {
      const metrics = makeMetrics();
      sweeping = open({ lifetimes: long, metrics });
      sweeping.wake();
      const said = async () => /^trawl_stray_objects \d+$/m.exec(await renderMetrics(metrics))?.[0];
      await until(async () => (await said()) !== undefined, 5, 'the search to end');
      await sweeping.close();
      return said();
    };
    expect(await sweepOnce()).to.equal('trawl_stray_objects 2');
    store.advance(1167 * hour);
    await lead(store, holder);
    await settleJob(store, holder, delivered, completed);
    await sweepOnce();
    expect(await there()).to.deep.equal(ids);
    store.advance(hour);
    sweeping = woken({ lifetimes: long });
    await until(async () => (await there()).length === 2, 5, 'two to go');
    expect(await there()).to.deep.equal([running.id, delivered.id]);
    expect(await objects.see('days/paid/x/0/lines.gz')).not.to.equal(null);
  });

  it('stops when its controller leads no more', async () => {
    for (let n = 0; n < 3; n++) await aCancelledJob();
    let leads = true;
    const remove: FolderStore['remove'] = async (prefix) => {
      leads = false;
      await objects.remove(prefix);
    };
    sweeping = woken({ objects: { ...objects, remove }, isLeading: () => leads });
    await until(async () => (await waiting()).length === 2, 5, 'one file to go');
    await sweeping.close();
    expect(await waiting()).to.have.length(2);
  });
});
