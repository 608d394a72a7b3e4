import { rename, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type ArchiveOptions, archiveDays, removeArchivedDays } from '../../src/archive/archive-days.ts';
import { readJsonLines } from '../../src/archive/json-lines.ts';
import { type Metrics, makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { keys } from '../../src/store/keys.ts';
import { archivedPartKey, beforeFirstEntry, listArchivedParts } from '../../src/store/log/archived-parts.ts';
import { ledgerStream, readLedger } from '../../src/store/log/read-ledger.ts';
import { freeLineStream, paidLineStream, readLines } from '../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { allOf, anOldAccount, type OldAccount, objectsIn } from '../support/old-account.ts';
import type { TestStore } from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';

const lifetimes = { job: 30 * 86_400_000 };

const fail = (error: unknown) => Promise.reject(error);

describe('closed days that cannot be archived now', () => {
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

  const allOfIt = (caller: OldAccount) => allOf(store, caller, (object) => readJsonLines(objects, object));
  const move = (given: Partial<ArchiveOptions> = {}) =>
    archiveDays({ store, objects, lifetimes, goOn: () => true, metrics: makeMetrics(), log: aLog().log, ...given });
  const failuresOf = async ({ upkeep_errors_total }: Pick<Metrics, 'upkeep_errors_total'>) =>
    (await upkeep_errors_total.get()).values.find(({ labels }) => labels.task === 'days')?.value;

  it('with a damaged object stay until it is removed, and other streams are archived', async () => {
    const [damaged, whole] = [await anOldAccount(store), await anOldAccount(store)];
    const before = [await allOfIt(damaged), await allOfIt(whole)];
    const origins = [ledgerStream(damaged.accountId), paidLineStream(damaged.keyId), freeLineStream(damaged.keyId)];
    for (const origin of origins)
      await objects.keep(archivedPartKey(origin, beforeFirstEntry), Buffer.from('no lines'));
    const { log, lines } = aLog();
    const metrics = makeMetrics();
    await move({ log, metrics });
    expect(await failuresOf(metrics)).to.equal(3);
    expect(lines.filter((line) => line.includes('cannot be moved')).map((line) => JSON.parse(line).id)).to.have.members(
      origins.map(({ id }) => id),
    );
    expect(await allOfIt(damaged)).to.deep.equal(before[0]);
    expect(await listArchivedParts(store, ledgerStream(whole.accountId))).to.have.length(1);
    expect(await allOfIt(whole)).to.deep.equal(before[1]);
    for (const origin of origins) await objects.remove(archivedPartKey(origin, beforeFirstEntry).replace(/[^/]*$/, ''));
    await move();
    for (const origin of origins) expect(await listArchivedParts(store, origin)).to.have.length.above(0);
    expect(await allOfIt(damaged)).to.deep.equal(before[0]);
  });

  it('are named by the verification, which reads on, and to those who read them where the object store has damaged them', async () => {
    const caller = await anOldAccount(store);
    await move();
    const parts = await listArchivedParts(store, ledgerStream(caller.accountId));
    for (const path of objectsIn(place.folder)) await truncate(join(place.folder, path), 30);
    const open = (object: string) => readJsonLines(objects, object);
    expect((await verifyLedger(store, caller.accountId, open)).problems).to.deep.equal(
      parts.map(({ object }) => `Its entries in ${object} cannot be read: unexpected end of file`),
    );
    const why = `${parts.at(-1)?.object} cannot be read: unexpected end of file`;
    const refused = await readLedger(store, caller.accountId, 1000, open).catch((error: Error) => error);
    expect(refused).to.include({ code: 'unavailable', message: why });
    const failure = await readLines(store, caller.accountId, 10_000, { open }).catch((error: Error) => error);
    expect(failure).to.include({ code: 'unavailable' });
    expect((failure as Error).message).to.match(/^days\/(paid|free)\/\S+ cannot be read: unexpected end of file$/);
  });

  it('of an account that cannot be read stay, and other streams are archived', async () => {
    const [broken, whole] = [await anOldAccount(store), await anOldAccount(store)];
    const before = await allOfIt(whole);
    await store.connection.send(['SET', keys.account(broken.accountId), 'no hash']);
    const metrics = makeMetrics();
    await move({ metrics });
    expect(await failuresOf(metrics)).to.equal(1);
    expect(await listArchivedParts(store, ledgerStream(whole.accountId))).to.have.length(1);
    expect(await allOfIt(whole)).to.deep.equal(before);
    expect(await listArchivedParts(store, paidLineStream(broken.keyId))).to.have.length(1);
  });

  it('all stay when the object store is away, and archiving throws', async () => {
    await anOldAccount(store);
    const { log, lines } = aLog();
    const away = place.folder;
    await rename(away, `${away}.away`);
    const refused = await move({ log }).catch((error: Error) => error);
    await rename(`${away}.away`, away);
    expect(refused).to.include({ code: 'unavailable' });
    expect(lines).to.deep.equal([]);
  });

  it('of a past lifetime leave no object behind when the object store was away while they were removed', async () => {
    await anOldAccount(store);
    await move();
    const lines = () => objectsIn(place.folder).filter((path) => /^days\/(paid|free)\//.test(path));
    expect(lines()).not.to.deep.equal([]);
    const away = place.folder;
    const removeAll = () => removeArchivedDays(store, objects, 0, () => true, fail);
    await rename(away, `${away}.away`);
    const refused = await removeAll().catch((error: Error) => error);
    await rename(`${away}.away`, away);
    expect(refused).to.include({ code: 'unavailable' });
    await removeAll();
    expect(lines()).to.deep.equal([]);
  });

  it('stay after the current step when goOn returns false', async () => {
    const caller = await anOldAccount(store);
    const before = await allOfIt(caller);
    let asked = 0;
    await move({ goOn: () => ++asked <= 2 });
    expect(objectsIn(place.folder)).to.have.length(1);
    expect(await allOfIt(caller)).to.deep.equal(before);
    await move();
    expect(await allOfIt(caller)).to.deep.equal(before);
    const there = objectsIn(place.folder).length;
    expect(await removeArchivedDays(store, objects, 0, () => false, fail)).to.equal(0);
    expect(objectsIn(place.folder)).to.have.length(there);
  });
});
