import { Readable } from 'node:stream';
import { expect } from 'chai';
import { archiveDays, removeArchivedDays } from '../../src/archive/archive-days.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { recordLimits } from '../../src/model/record-limits.ts';
import { openFolder } from '../../src/objects/folder-store.ts';
import { chargeCall } from '../../src/store/access/charge-call.ts';
import { countAuthFailure } from '../../src/store/access/count-auth-failure.ts';
import { noteStrayProxy } from '../../src/store/access/stray-proxy.ts';
import { removeAccount } from '../../src/store/accounts/remove-account.ts';
import { cancelJob } from '../../src/store/jobs/cancel-job.ts';
import { dropFile, findOldFiles } from '../../src/store/jobs/kept-files.ts';
import { readOpenings } from '../../src/store/jobs/open-work.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { listUnknownJobs } from '../../src/store/jobs/stray-objects.ts';
import { keys } from '../../src/store/keys.ts';
import { openRequestLog } from '../../src/store/log/write-lines.ts';
import { addPack } from '../../src/store/money/add-pack.ts';
import { grantCredits } from '../../src/store/money/grant-credits.ts';
import { setOffer } from '../../src/store/money/offers.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { openSession } from '../../src/store/people/open-session.ts';
import { addPasskey } from '../../src/store/people/passkeys.ts';
import { sweepRecord } from '../../src/store/sweep-record.ts';
import { anAdmittedBatch, cancelJobs } from '../support/batch-scenarios.ts';
import { eachWithEmptyRecord } from '../support/empty-record.ts';
import { freeLine } from '../support/free-line.ts';
import { aSecret } from '../support/people-scenarios.ts';
import {
  aDownload,
  admitted,
  aKey,
  anAccount,
  aPack,
  aPlan,
  aRunningJob,
  ask,
  completed,
  failed,
  holder,
  lead,
  type TestStore,
  takeJob,
  theJob,
} from '../support/record.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { read } from '../support/tree.ts';

const day = 86_400_000;
const lifetimes = { job: 30 * day, line: 90 * day };

/** Rows of docs/operate.md: kinds of keys, and when their entries go. */
const rows = [...read('docs/operate.md').matchAll(/^\| (`\w+`(?: `\w+`)*) \|[^|]*\|[^|]*\| ([^|]*) \|[^|]*\|$/gm)].map(
  ([, names, goes]) => ({ kinds: names!.replaceAll('`', '').split(' '), goes: goes! }),
);

describe('the bounds of the record', () => {
  let store: TestStore;
  eachWithEmptyRecord((fresh) => {
    store = fresh;
  });

  const count = async (...command: string[]) => Number(await store.connection.send(command));
  /** Fills a hash with fields that stand for entries of the past. */
  const fill = (key: string, fields: number) =>
    store.connection.send(['HSET', key, ...Array.from({ length: fields }, (_, n) => [`old${n}`, '{}']).flat()]);
  const refusalOf = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: { code?: string }) => error.code,
    );

  it('are listed in docs/operate.md, each kind of key once, and nothing else', () => {
    expect(rows.flatMap(({ kinds }) => kinds).sort()).to.deep.equal(Object.keys(keys).sort());
  });

  it('hold for addresses: failures beyond the limit make the record no larger', async () => {
    const rule = { maxFailures: 2, windowMs: day, blockMs: day };
    const limits = { failingAddresses: 30, blockedAddresses: 10 };
    for (let n = 0; n < 120; n++) {
      store.advance(1);
      for (const _ of [1, 2]) await countAuthFailure(store, `192.0.2.${n}`, rule, limits);
    }
    const sizes = [
      await count('HLEN', keys.failures),
      await count('ZCARD', keys.failing),
      await count('ZCARD', keys.blocks),
    ];
    expect(sizes).to.deep.equal([30, 30, 10]);
    expect(await store.connection.read(['HGET', keys.failures, '192.0.2.119'])).to.match(/^1 \d+ $/);
    store.advance(3 * day);
    expect(await sweepRecord(store, lifetimes)).to.include({ failures: 30, blocks: 10 });
    expect(await count('EXISTS', keys.failures, keys.failing, keys.blocks)).to.equal(0);
  });

  it('hold for what operators make: the next plan, offer, person, key, pack and id of a grant is refused', async () => {
    const { accountId } = await anAccount(store);
    const plan = (name: string) => aPlan(store, name, { quota: 1 });
    await fill(keys.plans, recordLimits.plans - 1);
    await plan('last');
    expect(await refusalOf(plan('more'))).to.equal('too_many');
    await plan('last');
    const offer = (name: string) => setOffer(store, { name, title: 'P', credits: 1, price_cents: 1, currency: 'eur' });
    await fill(keys.offers, recordLimits.offers - 1);
    await offer('last');
    expect(await refusalOf(offer('more'))).to.equal('too_many');
    const person = (email: string) =>
      invitePerson(store, { accountId, email, role: 'viewer', secret: aSecret(email).text, isBound: false });
    await fill(keys.people(accountId), recordLimits.peopleOfAccount - 1);
    await person('last@example.com');
    expect(await refusalOf(person('more@example.com'))).to.equal('too_many');
    await person('last@example.com');
    const linkOf = async (email: string) => {
      const link = aSecret(email);
      await invitePerson(store, { accountId, email, role: 'viewer', secret: link.text, isBound: false });
      return link.secretHash;
    };
    const sessionOf = (session: ReturnType<typeof aSecret>) => ({ session, oldHash: '', ip: '', agent: '' });
    const { personId } = aSecret('last@example.com');
    for (let n = 0; n < recordLimits.sessionsOfPerson + 5; n++) {
      await openSession(store, { linkHash: await linkOf('last@example.com') }, sessionOf(aSecret('last@example.com')));
      await person('last@example.com');
    }
    expect(await count('HLEN', keys.sessions(personId))).to.equal(recordLimits.sessionsOfPerson);
    expect(await count('HLEN', keys.signInLinks(personId))).to.equal(recordLimits.sessionsOfPerson);
    const ada = aSecret('last@example.com');
    await openSession(store, { linkHash: await linkOf('last@example.com') }, sessionOf(ada));
    const passkey = (id: string) =>
      addPasskey(store, { ...ada, accountId }, { id, name: 'x', key: 'key', counter: 0, transports: [] });
    for (let n = 0; n < recordLimits.passkeysOfPerson; n++) await passkey(`p${n}`);
    expect(await refusalOf(passkey('more'))).to.equal('too_many');
    expect(await count('HLEN', keys.passkeyOwners)).to.equal(recordLimits.passkeysOfPerson);
    await fill(keys.operators, recordLimits.operators);
    const operator = invitePerson(store, {
      accountId: '',
      email: 'op@example.com',
      role: 'operator',
      secret: aSecret('op@example.com').text,
      isBound: false,
    });
    expect(await refusalOf(operator)).to.equal('too_many');
    await fill(keys.keyring(accountId), recordLimits.keysOfAccount - 2);
    await aKey(store, accountId);
    expect(await refusalOf(aKey(store, accountId))).to.equal('too_many');
    await fill(keys.packs(accountId), 2 * recordLimits.packsOfAccount - 2);
    await aPack(store, accountId, 1);
    const pack = { id: 'more', title: 'More', total: 1, purchased_at: 0 };
    expect(await refusalOf(addPack(store, accountId, pack))).to.equal('too_many');
    await fill(keys.grants(accountId), recordLimits.grantIdsOfAccount - 1);
    await grantCredits(store, accountId, 1, { id: 'last' });
    expect(await refusalOf(grantCredits(store, accountId, 1, { id: 'more' }))).to.equal('too_many');
    expect(await grantCredits(store, accountId, 1, { id: 'last' })).to.include({ given: 1 });
    expect(await grantCredits(store, accountId, 1)).to.include({ given: 2 });
  });

  it('hold for open jobs: an account has no more than its own limit, and the system no more than its slots', async () => {
    const caller = await anAccount(store, { credits: 20, max_open: 5 });
    for (let n = 0; n < 8; n++) await ask(store, caller);
    await lead(store, holder);
    for (let n = 0; n < 5; n++) await takeJob(store, holder, 3);
    const { accountId } = caller;
    const sets = [keys.jobs(accountId), keys.openWork, keys.queue(accountId)];
    expect(await Promise.all(sets.map((key) => count('ZCARD', key)))).to.deep.equal([5, 5, 2]);
    expect(await readOpenings(store)).to.include({ queued: 2, active: 3, delayed: 0 });
  });

  it('hold for free lines: an account of many keys keeps ten times the lines of one key', async () => {
    const caller = await anAccount(store);
    const others = await Promise.all(Array.from({ length: 39 }, () => aKey(store, caller.accountId)));
    const lines = openRequestLog(store, 400, aLog().log);
    for (const key of [caller, ...others]) for (let n = 0; n < 400; n++) lines.add(key, { ...freeLine, at: n });
    await lines.close();
    const each = await Promise.all([caller, ...others].map(({ keyId }) => count('XLEN', keys.freeLines(keyId))));
    // Redis cuts whole nodes of a stream: about 15 lines.
    expect(each.reduce((sum, one) => sum + one, 0)).to.be.within(4000, 4000 + 40 * 20);
  });

  it('hold for counters: rates, quotas and statistics take as much for a year of calls as for a day', async () => {
    const quotas = { daily: 10_000, weekly: 10_000, monthly: 10_000 };
    const caller = await anAccount(store, { credits: 500, perSecond: 100, perMinute: 100, quotas });
    const sizes = async () => [
      await count('STRLEN', keys.rate(caller.accountId)),
      await count('STRLEN', keys.quota(caller.hash)),
      await count('HLEN', keys.stats('metadata')),
    ];
    const call = async () => {
      const id = await admitted(store, caller, { work: { holdMs: 1000 } });
      const { accountId, keyId } = caller;
      const held = { id, accountId, keyId, endpoint: 'metadata', repeat: null } as const;
      await chargeCall(store, { ...held, line: 'GET /v1/media/metadata', ip: '', answer: '' }, 1);
    };
    for (let n = 0; n < 300; n++) {
      await call();
      store.advance(n < 200 ? 61_000 : 3.7 * day);
    }
    const [rate, quota, minutes] = await sizes();
    expect(rate).to.be.at.most(88);
    expect(quota).to.be.at.most(2556);
    expect(minutes).to.equal(61);
  });

  it('hold for answers that are kept for an Idempotency-Key: 64 KiB each, for 24 hours', async () => {
    const caller = await anAccount(store, { credits: 9 });
    const { accountId, keyId } = caller;
    const keep = async (key: string, answer: string) => {
      const repeat = { key, request: 'x' };
      const id = await admitted(store, caller, { work: { holdMs: 1000 }, repeat });
      const held = { id, accountId, keyId, endpoint: 'metadata', repeat } as const;
      await chargeCall(store, { ...held, line: 'GET /v1/media/metadata', ip: '', answer }, 1);
      return keys.repeat(accountId, key);
    };
    const [whole, large] = [await keep('a', 'x'.repeat(65_536)), await keep('b', 'x'.repeat(65_537))];
    expect(await count('PTTL', whole)).to.be.within(1, day);
    expect(await count('EXISTS', large)).to.equal(0);
  });

  it('hold for objects of unknown jobs: no more are noted than the limit', async () => {
    for (let from = 0; from < 100_000; from += 5_000) {
      const noted = Array.from({ length: 5_000 }, (_, n) => ['1', `stray${from + n}`]).flat();
      await store.connection.send(['ZADD', keys.strays, ...noted]);
    }
    await listUnknownJobs(store, Readable.from([['11111111-2222-4333-8444-555555555555']]));
    expect(await count('ZCARD', keys.strays)).to.equal(100_000);
  });

  it('hold with time: after all lifetimes only what docs/operate.md calls lasting is left', async () => {
    const caller = await anAccount(store, { quota: 2, packs: [2], credits: 9, quotas: { daily: 50 } });
    await liveThrough(store, caller);
    const { folder, remove } = aFolder();
    const objects = await openFolder({ folder, seal: makeSeal({ secret: Buffer.alloc(32) }), now: Date.now });
    const goOn = () => true;
    const fail = (error: unknown) => Promise.reject(error);
    for (let n = 0; n < 5; n++) {
      store.advance(31 * day);
      await sweepRecord(store, lifetimes);
      for (let files = await findOldFiles(store, day); files.length > 0; files = await findOldFiles(store, day))
        for (const file of files) await dropFile(store, file);
      await archiveDays({ store, objects, lifetimes, goOn, metrics: makeMetrics(), log: aLog().log });
      await removeArchivedDays(store, objects, lifetimes.line, goOn, fail);
    }
    remove();
    const left = async () =>
      [...new Set(((await store.connection.send(['KEYS', '*'])) as string[]).map(kindOf))].sort();
    const lasting = rows.filter(({ goes }) => goes.startsWith('never')).flatMap(({ kinds }) => kinds);
    // The account and its plan are still there, and the present period is not closed.
    const present = ['plans', 'planUsers', 'key', 'quota', 'ledger'];
    expect((await left()).filter((kind) => ![...lasting, ...present].includes(kind))).to.deep.equal([]);
    await removeAccount(store, caller.accountId, caller.slug);
    expect((await left()).filter((kind) => ['key', 'quota', 'keyring'].includes(kind))).to.deep.equal([]);
    expect(await count('HLEN', keys.account(caller.accountId))).to.be.below(40);
  });
});

/** Lets an account do everything once that leaves a trace. */
async function liveThrough(store: TestStore, caller: Awaited<ReturnType<typeof anAccount>>): Promise<void> {
  const { accountId, keyId } = caller;
  const webhook = { url: 'https://example.com/hook', receiver: `${accountId}@example.com/hook`, authorization: '' };
  const work = { ...aDownload, webhook };
  for (const end of [completed, failed])
    await settleJob(store, holder, await aRunningJob(store, caller, { work, repeat: null }), end);
  await cancelJob(store, await theJob(store, await admitted(store, caller)));
  const batch = await anAdmittedBatch(store, caller, 2, { webhook });
  await cancelJobs(store, batch.id);
  const repeat = { key: 'c', request: 'x' };
  const id = await admitted(store, caller, { work: { holdMs: 1000 } });
  const held = { id, accountId, keyId, endpoint: 'metadata', repeat: null } as const;
  await chargeCall(store, { ...held, line: 'GET /v1/media/metadata', ip: '', answer: '' }, 1);
  // A call whose API dies, and its answer, which is never kept.
  await admitted(store, caller, { work: { holdMs: 1000 }, repeat });
  const lines = openRequestLog(store, 100, aLog().log);
  lines.add(caller, { ...freeLine, at: store.clock.now() });
  await lines.close();
  await countAuthFailure(store, '192.0.2.1', { maxFailures: 1, windowMs: day, blockMs: day });
  await noteStrayProxy(store, '10.0.0.5');
  const told = await anAccount(store, { quota: 1 });
  await settleJob(store, holder, await aRunningJob(store, told), completed);
  expect(await store.connection.send(['HLEN', keys.outbox]), 'a mail').to.equal(1);
  await removeAccount(store, told.accountId, told.slug);
  // Its expiry follows the clock of Redis, which no test moves.
  await store.connection.send(['DEL', keys.repeat(accountId, 'c')]);
}

/** Returns the name in `keys` of a key of the record. */
function kindOf(key: string): string {
  const name = Object.entries(keys).find(([, made]) =>
    typeof made === 'string' ? made === key : key.startsWith(prefixOf(made as (id: string) => string)),
  );
  return name?.[0] ?? key;
}

function prefixOf(make: (id: string) => string): string {
  const id = '00000000-0000-4000-8000-000000000000';
  return make(id).split(':').slice(0, 2).join(':').concat(':');
}
