import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { type ArchiveOptions, archiveDays, removeArchivedDays } from '../../src/archive/archive-days.ts';
import { readJsonLines, writeJsonLines } from '../../src/archive/json-lines.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { startSweeper } from '../../src/controller/sweeper.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { archivedPartKey, beforeFirstEntry, listArchivedParts } from '../../src/store/log/archived-parts.ts';
import { ledgerStream, readLedger } from '../../src/store/log/read-ledger.ts';
import { freeLineStream, paidLineStream, readLines } from '../../src/store/log/read-lines.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { rollPeriod } from '../../src/store/money/roll-period.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { allOf, anOldAccount, freeLines, type OldAccount, objectsIn } from '../support/old-account.ts';
import { makeRandom } from '../support/random.ts';
import { anAccount, aRunningJob, completed, holder, type TestStore } from '../support/record.ts';
import { aFolder, aLog, type TestRedis } from '../support/redis.ts';
import { seed } from '../support/seed.ts';
import { until } from '../support/until.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day };
const rounds = Number(process.env.ROUNDS ?? 3);
const random = makeRandom(seed);
const childProgram = join(import.meta.dirname, '../support/archive-child.ts');

describe('ended days', () => {
  let redis: TestRedis;
  let store: TestStore;
  let objects: FolderStore;
  let place: ReturnType<typeof aFolder>;
  eachWithEmptyRecord((fresh, server) => {
    [store, redis] = [fresh, server];
  });
  beforeEach(async () => {
    place = aFolder();
    objects = await openFolder({ folder: place.folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
  });
  afterEach(() => place.remove());

  const open = (object: string) => readJsonLines(objects, object);
  const all = (caller: OldAccount) => allOf(store, caller, open);
  const lengthOf = async (stream: string) => Number(await store.connection.send(['XLEN', stream]));
  /** Everything is there once, in the books, in the log and in the object store. */
  const expectWhole = async (caller: OldAccount, before: Awaited<ReturnType<typeof all>>) => {
    expect(await all(caller)).to.deep.equal(before);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    expect(await verifyLedger(store, caller.accountId, open)).to.deep.equal({
      entries: before.ledger.length,
      problems: [],
    });
    const origins = [ledgerStream(caller.accountId), freeLineStream(caller.keyId), paidLineStream(caller.keyId)];
    const listed = (await Promise.all(origins.map((origin) => listArchivedParts(store, origin)))).flat();
    expect(objectsIn(place.folder)).to.have.length(listed.length);
  };
  const goOn = () => true;
  const fail = (error: unknown) => Promise.reject(error);
  const move = (given: Partial<ArchiveOptions> = {}) =>
    archiveDays({ store, objects, lifetimes, goOn, metrics: makeMetrics(), log: aLog().log, ...given });

  /** Moves in a process that is killed at a point, or after some time. */
  const moveAndDie = async (point: string, nth = 1, delayMs = 0) => {
    const args = [childProgram, 'move', redis.url, place.folder, String(store.clock.offset()), point, String(nth)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    let said = '';
    for await (const chunk of child.stdout) {
      said += chunk;
      if (said.includes(delayMs > 0 ? 'ready' : 'here')) break;
    }
    await pause(delayMs);
    child.kill('SIGKILL');
    await ended;
  };

  it('D24: go to the object store, and stay in the log, in the ledger and in what is verified', async () => {
    const caller = await anOldAccount(store);
    const before = await all(caller);
    expect(before.lines).to.have.length(freeLines + 1 + 13);
    const moved = await move();
    expect(await lengthOf(keys.freeLines(caller.keyId))).to.equal(1);
    expect(await lengthOf(keys.paidLines(caller.keyId))).to.equal(1);
    const ledger = await lengthOf(keys.ledger(caller.accountId));
    expect(ledger).to.be.within(1, before.ledger.length - 10);
    expect(moved).to.equal(freeLines + 12 + before.ledger.length - ledger);
    expect(await move()).to.equal(0);
    await expectWhole(caller, before);
    expect(await readLedger(store, caller.accountId, 12, open)).to.deep.equal(before.ledger.slice(0, 12));
    expect(await verifyLedger(store, caller.accountId)).to.deep.include({ entries: ledger });
  });

  it('are archived once a day by the sweeper, and removed by it after their lifetime', async () => {
    const caller = await anOldAccount(store);
    const before = await all(caller);
    const { log, lines } = aLog();
    const options = {
      store,
      objects,
      lifetimes: { ...lifetimes, line: 320 * day, file: day },
      isLeading: () => true,
      probe: { isAway: () => false, check: async () => true },
      metrics: makeMetrics(),
      log,
    };
    const sweeping = startSweeper(options);
    const said = (words: string) => lines.filter((line) => line.includes(words)).length;
    try {
      sweeping.wake();
      await until(() => said('ended days were moved') === 1, 5, 'days that are moved');
      await expectWhole(caller, before);
      store.advance(300 * day);
      sweeping.wake();
      await until(
        async () => (await readLines(store, caller.accountId, 9, { open })).length === 2,
        5,
        'old lines to go',
      );
    } finally {
      await sweeping.close();
    }
  });

  it('ledger entries of a job stay in Redis as long as the job', async () => {
    const caller = await anAccount(store, { quota: 9 });
    await settleJob(store, holder, await aRunningJob(store, caller), completed);
    store.advance(29 * day);
    await settleJob(store, holder, await aRunningJob(store, caller), completed);
    store.advance(5 * day);
    await rollPeriod(store, caller.accountId);
    await move();
    const kept = await readLedger(store, caller.accountId, 9);
    expect(kept.map(({ kind }) => kind)).to.deep.equal(['grant', 'lapse', 'charge']);
  });

  const points = [
    ['before', 1, 'before an object of the ledger is written'],
    ['within', 2, 'in the middle of an object of lines'],
    ['between', 1, 'when the ledger is in the object store and in the record'],
    ['between', 3, 'when lines are in the object store and in the record'],
    ['after', 2, 'when an object is noted'],
  ] as const;
  for (const [point, nth, when] of points) {
    it(`are all there once after a kill ${when}`, async () => {
      const caller = await anOldAccount(store);
      const before = await all(caller);
      await moveAndDie(point, nth);
      expect((await all(caller)).lines).to.deep.equal(before.lines);
      await move();
      await objects.sweepTemporary(Number.POSITIVE_INFINITY);
      await expectWhole(caller, before);
    });
  }

  it(`are all there once after ${rounds} kills at any time`, async function () {
    this.timeout(300_000 + rounds * 5000);
    const caller = await anOldAccount(store);
    const before = await all(caller);
    for (let n = 0; n < rounds; n++) {
      await moveAndDie('', 1, 1 + random() * 60);
      expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    }
    await move();
    await objects.sweepTemporary(Number.POSITIVE_INFINITY);
    await expectWhole(caller, before);
  });

  it('are not doubled when the cap of free lines took some between the write and a repetition', async () => {
    const caller = await anOldAccount(store);
    const before = await all(caller);
    await moveAndDie('between', 2);
    const capped = keys.freeLines(caller.keyId);
    await store.connection.send(['XTRIM', capped, 'MAXLEN', '1000']);
    await move();
    await expectWhole(caller, before);
  });

  it('are archived once by two controllers at once, also when one is delayed after reading', async () => {
    const caller = await anOldAccount(store);
    const before = await all(caller);
    const hasLooked = Promise.withResolvers<void>();
    const goesOn = Promise.withResolvers<void>();
    const { connection } = store;
    const read: typeof connection.read = async (command) => {
      const reply = await connection.read(command);
      if (command[0] === 'XRANGE') {
        hasLooked.resolve();
        await goesOn.promise;
      }
      return reply;
    };
    const held = move({ store: { ...store, connection: { ...connection, read } } });
    await hasLooked.promise;
    await Promise.all([move(), move()]);
    goesOn.resolve();
    await held;
    await move();
    await expectWhole(caller, before);
  });

  it('request-log lines are removed after their lifetime, the ledger never', async () => {
    const caller = await anOldAccount(store);
    await move();
    const ledger = await readLedger(store, caller.accountId, 1000, open);
    expect(await removeArchivedDays(store, objects, 200 * day, goOn, fail)).to.equal(0);
    store.advance(91 * day);
    await move();
    expect(await removeArchivedDays(store, objects, 90 * day, goOn, fail)).to.be.above(2);
    expect(await readLines(store, caller.accountId, 9, { open })).to.deep.equal([]);
    expect(await listArchivedParts(store, paidLineStream(caller.keyId))).to.deep.equal([]);
    expect(objectsIn(place.folder).every((path) => path.startsWith('days/ledger/'))).to.equal(true);
    expect((await readLedger(store, caller.accountId, 1000, open)).slice(-ledger.length)).to.deep.equal(ledger);
    expect((await verifyLedger(store, caller.accountId, open)).problems).to.deep.equal([]);
  });

  it('of a removed account: its ledger can be read, its lines go with their time', async () => {
    const caller = await anOldAccount(store);
    const { ledger } = await all(caller);
    await move();
    await removeAccount(store, caller.accountId, caller.slug);
    await move();
    expect(await readLedger(store, caller.accountId, 1000, open)).to.deep.equal(ledger);
    await removeArchivedDays(store, objects, 0, goOn, fail);
    expect(objectsIn(place.folder).every((path) => path.startsWith('days/ledger/'))).to.equal(true);
  });

  it('of the last billing period of a removed account go to the object store, too', async () => {
    const caller = await anOldAccount(store);
    const { ledger } = await all(caller);
    await removeAccount(store, caller.accountId, caller.slug);
    store.advance(62 * day);
    await move();
    expect(await lengthOf(keys.ledger(caller.accountId))).to.equal(0);
    expect(await readLedger(store, caller.accountId, 1000, open)).to.deep.equal(ledger);
  });

  it('go to another object when theirs has entries that this record never had, as after a restore of an old backup', async () => {
    const caller = await anOldAccount(store);
    const before = await all(caller);
    const origins = [ledgerStream(caller.accountId), paidLineStream(caller.keyId)];
    const foreign = origins.map((origin) => archivedPartKey(origin, beforeFirstEntry));
    const others = [1, 2, 3].map((n) => ({ entry: `${n}-0`, at: n }));
    for (const object of foreign) await writeJsonLines(objects, object, others);
    await move();
    for (const { stream } of origins) expect(await lengthOf(stream), stream).to.be.within(1, 3);
    expect(await all(caller)).to.deep.equal(before);
    for (const check of [
      await verifyLedger(store, caller.accountId),
      await verifyLedger(store, caller.accountId, open),
    ])
      expect(check.problems).to.deep.equal([]);
    for (const object of foreign) expect(await open(object)).to.deep.equal(others);
    expect(await move()).to.equal(0);
    store.advance(91 * day);
    await removeArchivedDays(store, objects, 90 * day, goOn, fail);
    const kept = objectsIn(place.folder).filter((path) => path.startsWith('days/paid/'));
    expect(kept.map((path) => path.replace(/(lines\.gz).*/, '$1'))).to.deep.equal(foreign.slice(1));
  });

  it('of a ledger with a problem stay in Redis', async () => {
    const caller = await anOldAccount(store);
    const ledger = keys.ledger(caller.accountId);
    const entries = await readLedger(store, caller.accountId, 99);
    const given = entries.findLast(({ kind, balance }) => kind === 'grant' && balance === 'credits');
    await store.connection.send(['XDEL', ledger, given!.entry]);
    const { problems } = await verifyLedger(store, caller.accountId);
    expect(problems[0]).to.match(/^Entry \S+ takes the credits below zero$/);
    await move();
    expect(await lengthOf(ledger)).to.equal(entries.length - 1);
    expect(await verifyLedger(store, caller.accountId)).to.deep.include({ problems });
  });

  it('archived days that are missing in the object store are reported by the verification, which reads on', async () => {
    const caller = await anOldAccount(store);
    await move();
    const [first] = await listArchivedParts(store, ledgerStream(caller.accountId));
    await rm(join(place.folder, 'days/ledger'), { recursive: true });
    expect((await verifyLedger(store, caller.accountId, open)).problems).to.deep.equal([
      `Its entries in ${first!.object} are not in the object store`,
    ]);
    expect((await verifyLedger(store, caller.accountId)).problems).to.deep.equal([]);
    const refused = await readLedger(store, caller.accountId, 1000, open).catch((error: Error) => error);
    expect(refused).to.include({ code: 'unavailable' });
  });
});
