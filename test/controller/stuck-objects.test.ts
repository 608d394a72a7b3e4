import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, utimesSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { archiveDays } from '../../src/archive/archive-days.ts';
import { makeMetrics, renderMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { keys } from '../../src/store/keys.ts';
import { listArchivedParts } from '../../src/store/log/archived-parts.ts';
import { ledgerStream } from '../../src/store/log/read-ledger.ts';
import { freeLineStream } from '../../src/store/log/read-lines.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { mountSmall, unmount, whyNoMounts } from '../support/mount.ts';
import { anOldAccount } from '../support/old-account.ts';
import type { TestStore } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { until } from '../support/until.ts';

const hour = 3_600_000;
const lifetimes = { job: 720 * hour, line: 2160 * hour, file: 24 * hour };

const why = whyNoMounts();
// This is so for everybody but root.
if (why !== null) console.warn(`The tests of objects that cannot be removed are left out: ${why}`);
else describe('an object that cannot be removed', testSweep);

function testSweep(): void {
  let store: TestStore;
  let objects: FolderStore;
  let folder: string;
  let end: () => Promise<void>;
  const stuck = new Set<string>();
  let sweeper: ReturnType<typeof startSweeper> | undefined;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });
  beforeEach(async () => {
    const place = aFolder();
    folder = place.folder;
    objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    end = async () => {
      await sweeper?.close();
      stuck.forEach(release);
      place.remove();
    };
  });
  afterEach(() => end());

  const block = (path: string) => {
    // A folder under which a disk lies is busy.
    mountSmall(path, 2 ** 20);
    stuck.add(path);
  };
  const release = (path: string) => {
    unmount(path);
    stuck.delete(path);
  };

  /** Begins a sweep; returns what it tells. */
  const sweep = () => {
    const [metrics, { log, lines }] = [makeMetrics(), aLog()];
    const probe = { isAway: () => false, check: async () => true };
    sweeper = startSweeper({ store, objects, probe, lifetimes, isLeading: () => true, metrics, log });
    sweeper.wake();
    return { show: () => renderMetrics(metrics), lines };
  };

  it('as an unfinished upload stops the removal of no other upload, nor the search for stray objects behind it', async () => {
    const uploads = ['stuck', 'a-first', 'z-last'].map((name) => join(folder, '.uploads', name));
    for (const upload of uploads) mkdirSync(upload);
    const [first = '', ...others] = uploads;
    block(first);
    for (const upload of uploads) utimesSync(upload, 1, 1);
    await objects.keep(`${randomUUID()}/1/media.mp4`, Buffer.from('a film'));
    const { show, lines } = sweep();
    await until(async () => (await show()).includes('trawl_stray_objects 1'), 5, 'the stray object to be found');
    expect(others.filter(existsSync)).to.deep.equal([]);
    expect(await show()).to.include('trawl_upkeep_errors_total{task="sweep"} 1');
    expect(lines.join('')).to.include('EBUSY');
  });

  it('as an archived day keeps no other day from the archive', async () => {
    const first = await anOldAccount(store);
    await archiveDays({ store, objects, lifetimes, goOn: () => true, metrics: makeMetrics(), log: aLog().log });
    const [old] = await listArchivedParts(store, freeLineStream(first.keyId));
    block(dirname(join(folder, old?.object ?? '')));
    store.advance(lifetimes.line);
    const { accountId } = await anOldAccount(store);
    const { show } = sweep();
    const isArchived = async () => (await listArchivedParts(store, ledgerStream(accountId))).length > 0;
    await until(isArchived, 5, 'the other day to be archived');
    expect(await listArchivedParts(store, freeLineStream(first.keyId))).to.deep.include(old);
    expect(await show()).to.include('trawl_upkeep_errors_total{task="sweep"} 1');
  });

  it('as an archived day keeps no other day from its removal, and is tried again 10 minutes later', async () => {
    const { keyId } = await anOldAccount(store);
    await archiveDays({ store, objects, lifetimes, goOn: () => true, metrics: makeMetrics(), log: aLog().log });
    const parts = () => listArchivedParts(store, freeLineStream(keyId));
    const [old] = await parts();
    const others = (await store.connection.read(['ZCARD', keys.days])) - 1;
    const place = dirname(join(folder, old?.object ?? ''));
    block(place);
    store.advance(lifetimes.line);
    const { show, lines } = sweep();
    const isOver = () => lines.find((line) => line.includes('"days"'));
    expect(await until(isOver, 5, 'the other days to be removed')).to.include(`"days":${others}}`);
    expect(await parts()).to.deep.equal([old]);
    expect(await show()).to.include('trawl_upkeep_errors_total{task="sweep"} 1');
    release(place);
    store.advance(600_000);
    const isGone = async () => {
      // The sweep before it may not have ended.
      sweeper?.wake();
      return (await parts()).length === 0;
    };
    await until(isGone, 5, 'the day to be removed, too');
  });

  it('as the revocations of a day keeps no other day of them from its removal', async () => {
    const days = ['2020-01-01', '2020-01-02', '2020-01-03'];
    for (const day of days) await objects.keep(`revocations/${day}/one/note.json`, Buffer.from('{}'));
    const folders = days.map((day) => join(folder, 'revocations', day));
    folders.slice(0, 2).forEach(block);
    const { show } = sweep();
    await until(() => !existsSync(folders[2] ?? ''), 5, 'the day that can be removed is');
    await until(async () => (await show()).includes('trawl_upkeep_errors_total{task="sweep"} 2'), 5, 'both are told');
  });
}
