import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { type FolderStore, openFolder } from '../../src/objects/folder-store.ts';
import { revoke } from '../../src/objects/revocations.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { keys } from '../../src/store/keys.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { readTopup, setTopup } from '../../src/store/money/set-topup.ts';
import { takePurchase } from '../../src/store/money/take-purchase.ts';
import { invitePerson } from '../../src/store/people/invite-person.ts';
import { prepareSchema } from '../../src/store/schema.ts';
import { dumpRecord, runBeside } from '../support/backups.ts';
import { aSecret } from '../support/people-scenarios.ts';
import { endJobs, makeAccounts } from '../support/populate.ts';
import {
  admitted,
  aKey,
  anAccount,
  aRunningJob,
  completed,
  holder,
  storeOf,
  type TestStore,
} from '../support/record.ts';
import { aFolder, startTestServer, type TestRecord } from '../support/redis.ts';

describe('backup and restore', () => {
  let source: TestRecord;
  let target: TestRecord;
  before(async () => {
    [source, target] = await Promise.all([startTestServer(), startTestServer()]);
  });
  after(() => Promise.all([source.stop(), target.stop()]));

  let store: TestStore;
  let restored: TestStore;
  let home: { folder: string; remove: () => void };
  let objects: FolderStore;
  beforeEach(async () => {
    await Promise.all([source.flush(), target.flush()]);
    [store, restored] = [storeOf(source.connection), storeOf(target.connection)];
    await prepareSchema(store);
    home = aFolder();
    const seal = makeSeal({ secret: Buffer.alloc(32, 1), old: null });
    objects = await openFolder({ folder: join(home.folder, 'objects'), seal, now: Date.now });
    writeFileSync(join(home.folder, 'secret'), Buffer.alloc(32, 1).toString('base64'));
  });
  afterEach(() => home.remove());

  const backups = () => join(home.folder, 'backups');
  const besideSource = (...line: string[]) => runBeside(line, { TRAWL_REDIS_URL: source.url, TRAWL_DATA: home.folder });
  const besideTarget = (...line: string[]) => runBeside(line, { TRAWL_REDIS_URL: target.url, TRAWL_DATA: home.folder });
  const backUp = async (...more: string[]) => {
    const { code, json, out } = await besideSource('record', 'backup', backups(), ...more);
    expect(code, out).to.equal(0);
    return json;
  };
  const restore = (...more: string[]) => besideTarget('record', 'restore', backups(), ...more);

  it('give back the whole record, but nobody leads and nobody is signed in', async () => {
    const callers = await makeAccounts(store, 3, 100);
    await endJobs(store, callers, 5);
    await aRunningJob(store, callers[0]!);
    const person = await invite(store, callers[0]!.accountId, 'owner@example.com');
    await source.connection.send(['SET', 'of somebody else', 'x']);
    const { keys: count, taken_at } = await backUp();
    const before = await dumpRecord(source.url);
    expect(count).to.be.within(before.size - 1, before.size);
    const { code, json } = await restore();
    expect(code).to.equal(0);
    const after = await dumpRecord(target.url);
    const own = [keys.backup, keys.restored, keys.lead, keys.signInLinks(person)];
    for (const name of own) [before, after].map((dump) => dump.delete(name));
    expect([...after]).to.deep.equal([...before]);
    expect(json.keys).to.equal(after.size);
    expect(await target.connection.send(['EXISTS', keys.lead, keys.signInLinks(person), 'of somebody else'])).to.equal(
      0,
    );
    const notes = (await target.connection.read(['HMGET' as 'HGET', keys.restored, 'taken_at'])) as unknown;
    expect(notes).to.deep.equal([String(Date.parse(taken_at))]);
  });

  it('take one moment while the service works: every balance follows from its ledger', async () => {
    const callers = await makeAccounts(store, 4, 1_000);
    let isOver = false;
    const work = (async () => {
      while (!isOver) await endJobs(store, callers, 3);
    })();
    const taken = await backUp();
    isOver = true;
    await work;
    expect(taken.keys).to.be.greaterThan(20);
    expect((await restore()).code).to.equal(0);
    for (const { accountId } of callers) expect((await verifyLedger(restored, accountId)).problems).to.deep.equal([]);
  });

  it('keep as many backups as are wanted, and remove what was broken off', async () => {
    for (let n = 0; n < 3; n++) await backUp();
    await mkdir(join(backups(), '.partial-old'));
    const [hour, now] = [3_700, Date.now() / 1000];
    utimesSync(join(backups(), '.partial-old'), now - hour, now - hour);
    await mkdir(join(backups(), '.partial-new'));
    const { folder } = await backUp('--keep', '2');
    const left = readdirSync(backups()).sort();
    expect(left).to.have.length(3);
    expect([left[0], join(backups(), left[2]!)]).to.deep.equal(['.partial-new', folder]);
  });

  it('refuse a backup that is not whole, and touch nothing', async () => {
    const { folder } = await backUp();
    const [snapshot, manifest] = ['record.rdb', 'manifest.json'].map((name) => join(folder, name)) as [string, string];
    const [whole, facts] = [readFileSync(snapshot), readFileSync(manifest, 'utf8')];
    const breaks: [string, () => void, RegExp][] = [
      ['cut off', () => writeFileSync(snapshot, whole.subarray(0, -3)), /has no end/],
      ['longer', () => appendFileSync(snapshot, 'x'), /goes on behind its end/],
      ['altered', () => writeFileSync(snapshot, altered(whole)), /SHA-256/],
      ['without facts', () => rmSync(manifest), /There is no complete backup/],
      ['with other facts', () => writeFileSync(manifest, facts.replace(/"keys": \d+/, '"keys": 1')), /keys, not 1/],
      ['of another kind', () => writeFileSync(manifest, '{"version": 2}'), /is not that of a backup/],
      ['of a later layout', () => writeFileSync(manifest, facts.replace(/"layout": \d+/, '"layout": 99')), /layout 99/],
    ];
    for (const [title, breakIt, sentence] of breaks) {
      breakIt();
      const { code, json } = await besideTarget('record', 'restore', folder);
      expect([code, title]).to.deep.equal([1, title]);
      expect(json.error, title).to.match(sentence);
      writeFileSync(snapshot, whole);
      writeFileSync(manifest, facts);
    }
    expect((await dumpRecord(target.url)).size).to.equal(0);
  });

  it('refuse a record that is not empty unless it may be replaced, and one that a process uses', async () => {
    await anAccount(store);
    await backUp();
    await anAccount(restored);
    const before = await dumpRecord(target.url);
    const refused = await restore();
    expect([refused.code, refused.json.code]).to.deep.equal([1, 'already_exists']);
    const unsubscribe = await target.connection.subscribe('{trawl}:work', () => {});
    expect((await restore('--replace')).json.code).to.equal('in_use');
    await unsubscribe();
    await target.connection.send(['SET', keys.lead, 'somebody/1', 'PX', '15000']);
    expect((await restore('--replace')).json.code).to.equal('in_use');
    await target.connection.send(['DEL', keys.lead]);
    expect([...(await dumpRecord(target.url))]).to.deep.equal([...before]);
    expect((await restore('--replace')).code).to.equal(0);
    expect((await target.connection.read(['HGETALL', keys.slugs])) as string[]).to.have.length(2);
  });

  it('leave the record as it is where Redis does not take the values of the backup', async () => {
    await anAccount(store);
    const { folder } = await backUp();
    await anAccount(restored);
    const before = await dumpRecord(target.url);
    const refuseToRestore = async () => {
      const { code, json } = await restore('--replace');
      expect([code, json.code]).to.deep.equal([1, 'unavailable']);
      expect(json.error).to.match(/does not take the values of this backup/);
      expect([...(await dumpRecord(target.url))]).to.deep.equal([...before]);
    };
    await target.connection.send(['ACL', 'SETUSER', 'default', '-restore']);
    await refuseToRestore();
    await target.connection.send(['ACL', 'SETUSER', 'default', '+restore']);
    fromLaterRedis(folder);
    await refuseToRestore();
  });

  it('take rights away again that were revoked after the backup, and name them', async () => {
    const [one, other] = [await anAccount(store, { credits: 5 }), await anAccount(store, { credits: 5 })];
    const [leaked, rotated, kept] = [await aKey(store, one.accountId), await aKey(store, one.accountId), one];
    await invite(store, one.accountId, 'gone@example.com');
    await admitted(store, other);
    await backUp();
    const now = Date.now();
    const account = one.accountId;
    const nothing = async () => {};
    const open = async () => objects;
    const made = randomUUID();
    const later = now + 3_600_000;
    await revoke(open, now, { kind: 'key', account, key: leaked.keyId, ends: now }, nothing);
    await revoke(open, now, { kind: 'key', account, key: rotated.keyId, ends: later }, nothing);
    await revoke(open, now, { kind: 'key', account, key: made, ends: now }, nothing);
    await revoke(open, now, { kind: 'person', account, email: 'gone@example.com' }, nothing);
    await revoke(open, now, { kind: 'account', account: other.accountId }, () =>
      setAccount(store, other.accountId, { suspended: true }),
    );
    const { json } = await restore();
    const named = json.revoked.map(({ kind, account: slug, name }: Record<string, string>) => [kind, slug, name]);
    expect(named).to.have.deep.members([
      ['key', one.slug, leaked.keyId.slice(0, 8)],
      ['key', one.slug, rotated.keyId.slice(0, 8)],
      ['person', one.slug, 'gone@example.com'],
      ['account', other.slug, ''],
    ]);
    const keyFacts = (hash: string) => target.connection.send(['HMGET', keys.key(hash), 'active', 'expires']);
    expect(await keyFacts(leaked.hash)).to.deep.equal(['0', '']);
    expect(await keyFacts(rotated.hash)).to.deep.equal(['1', String(later)]);
    expect(await keyFacts(kept.hash)).to.deep.equal(['1', '']);
    expect(await target.connection.send(['HLEN', keys.people(account)])).to.equal(0);
    const facts = await target.connection.send(['HMGET', keys.account(other.accountId), 'suspended', 'held']);
    expect(facts).to.deep.equal(['1', '0']);
  });

  it('warn when the backup is older than what is kept of revocations', async () => {
    const { accountId, keyId } = await anAccount(store);
    const { folder } = await backUp();
    const file = join(folder, 'manifest.json');
    const facts = JSON.parse(readFileSync(file, 'utf8'));
    expect((await restore()).json.revocations_since).to.equal(facts.begun_at);
    const begun_at = new Date(Date.now() - 401 * 86_400_000).toISOString();
    writeFileSync(file, JSON.stringify({ ...facts, begun_at }));
    const revocation = { kind: 'key', account: accountId, key: keyId, ends: 1 } as const;
    await revoke(
      async () => objects,
      Date.now(),
      revocation,
      async () => {},
    );
    const { json } = await restore('--replace');
    expect(Date.now() - Date.parse(json.revocations_since)).to.be.within(400 * 86_400_000, 400 * 86_400_000 + 60_000);
    expect(json.revoked).to.have.length(1);
    expect((await restore('--replace', '--without-files')).json.revocations_since).to.equal(null);
  });

  it('list the jobs whose objects the record does not know, and keep these objects', async () => {
    const caller = await anAccount(store, { credits: 5 });
    const known = await aRunningJob(store, caller);
    await backUp();
    const later = await aRunningJob(store, caller);
    for (const { id } of [known, later]) {
      await objects.keep(`${id}/1/media.mp4`, Buffer.from('a film'));
      await settleJob(store, holder, known, completed);
    }
    await objects.keep('days/paid/x/0/lines.gz', Buffer.from('lines'));
    const { json } = await restore();
    expect(json.unknown_jobs).to.deep.equal([later.id]);
    expect(await objects.see(`${later.id}/1/media.mp4`)).not.to.equal(null);
    expect(await target.connection.send(['ZCARD', keys.strays])).to.equal(1);
  });

  it('disable every automatic top-up, and drop a purchase that was never tried: it may be paid, over its cap or unwanted', async () => {
    const { accountId, slug } = await anAccount(store, { quota: 5, paid: true });
    await setTopup(store, accountId, { enabled: '1', pack_total: '10', monthly_cap_cents: '100', price_cents: '90' });
    const since = Date.now() - 26 * 3_600_000;
    const fields = ['purchase', 'asked', 'purchase_attempts', '0', 'purchase_since', String(since)];
    await store.connection.send(['HSET', keys.topup(accountId), ...fields]);
    await store.connection.send(['ZADD', keys.purchases, String(since), accountId]);
    await anAccount(store);
    await backUp();
    const { json } = await restore();
    expect(json.disabled_topups).to.deep.equal([slug]);
    expect(await target.connection.send(['HGET', keys.account(accountId), 'topup'])).to.equal('');
    expect(await takePurchase(restored, accountId, 90_000)).to.equal(null);
    const topup = await readTopup(restored, accountId);
    expect(topup).to.include({ enabled: '0', purchase: '', monthly_cap_cents: '100' });
    expect(Date.now() - Number(topup.last_purchase_at)).to.be.within(0, 60_000);
  });

  it('leave automatic top-ups as they are when nothing happened after the backup', async () => {
    const { accountId } = await anAccount(store, { quota: 5, paid: true });
    await setTopup(store, accountId, { enabled: '1', pack_total: '10' });
    await backUp();
    expect((await restore('--nothing-since')).json.disabled_topups).to.deep.equal([]);
    expect(await readTopup(restored, accountId)).to.deep.equal({ enabled: '1', pack_total: '10' });
    expect(await target.connection.send(['HGET', keys.account(accountId), 'topup'])).to.equal('1');
  });

  it('leave the object store out where it is lost too', async () => {
    await anAccount(store);
    await backUp();
    rmSync(join(home.folder, 'objects'), { recursive: true });
    writeFileSync(join(home.folder, 'objects'), 'not a folder');
    const refused = await restore();
    expect([refused.code, refused.json.code]).to.deep.equal([1, 'unavailable']);
    expect((await dumpRecord(target.url)).size).to.equal(0);
    expect((await restore('--without-files')).code).to.equal(0);
  });
});

/** Returns the id of a person who was invited and has a link. */
async function invite(store: TestStore, accountId: string, email: string): Promise<string> {
  const { personId, text: secret } = aSecret(email);
  await invitePerson(store, { accountId, email, role: 'owner', secret, isBound: false });
  return personId;
}

/** Lets a backup say that a later Redis wrote it, whose format no Redis of today reads. */
function fromLaterRedis(folder: string): void {
  const [snapshot, manifest] = [join(folder, 'record.rdb'), join(folder, 'manifest.json')];
  const bytes = readFileSync(snapshot);
  bytes.write('9999', 'REDIS'.length);
  writeFileSync(snapshot, bytes);
  const facts = JSON.parse(readFileSync(manifest, 'utf8'));
  writeFileSync(manifest, JSON.stringify({ ...facts, sha256: createHash('sha256').update(bytes).digest('hex') }));
}

function altered(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  // Within the checksum at its end, so that all values can still be read.
  copy[copy.length - 1]! ^= 1;
  return copy;
}
