import { createHash, randomBytes } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { makeSeal } from '../../src/base/seal.ts';
import { setAccount } from '../../src/store/accounts/set-account.ts';
import { keys } from '../../src/store/keys.ts';
import { readAudit } from '../../src/store/log/read-audit.ts';
import { verifyLedger } from '../../src/store/log/verify-ledger.ts';
import { wholeService } from '../../src/store/lua/note-change.ts';
import { dumpRecord, keysOfRestore, runBeside, sayBeside } from '../support/backups.ts';
import { endJobs, makeAccounts } from '../support/populate.ts';
import { runInBash } from '../support/procedures.ts';
import { anAccount, aRunningJob } from '../support/record.ts';
import { eachWithRestoreScene, invite, type RestoreScene } from '../support/restore-scene.ts';

describe('backup and restore', () => {
  let source: RestoreScene['source'];
  let target: RestoreScene['target'];
  let store: RestoreScene['store'];
  let restored: RestoreScene['restored'];
  let home: RestoreScene['folder'];
  let backups: RestoreScene['backups'];
  let admin: RestoreScene['admin'];
  let backUp: RestoreScene['backUp'];
  let restore: RestoreScene['restore'];
  let restoreFrom: RestoreScene['restoreFrom'];
  eachWithRestoreScene((scene) => {
    ({ source, target, store, restored, folder: home, backups, admin, backUp, restore, restoreFrom } = scene);
  });

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
    const own = [...keysOfRestore, keys.lead, keys.signInLinks(person)];
    for (const name of own) [before, after].map((dump) => dump.delete(name));
    expect([...after]).to.deep.equal([...before]);
    expect(json.keys).to.equal(after.size);
    expect(await target.connection.send(['EXISTS', keys.lead, keys.signInLinks(person), 'of somebody else'])).to.equal(
      0,
    );
    const notes = (await target.connection.read(['HMGET' as 'HGET', keys.restored, 'taken_at'])) as unknown;
    expect(notes).to.deep.equal([String(Date.parse(taken_at))]);
    const [entry] = await readAudit(restored, wholeService, { limit: 9, open: async () => null });
    expect(entry).to.deep.include({ via: 'command', action: 'record.restore', account: '', change: { taken_at } });
  });

  it('say that a drain of the backup lasts in the restored record, and since when', async () => {
    await admin('drain', 'on');
    const { since } = await admin('drain', 'status');
    await backUp();
    await admin('drain', 'off');
    const { code, json } = await restore();
    expect([code, json.draining_since]).to.deep.equal([0, since]);
    const line = ['record', 'restore', backups, '--replace'];
    const { out } = await sayBeside(line, { TRAWL_REDIS_URL: target.url, TRAWL_DATA: home });
    expect(out).to.include(
      `The backup was taken in a drain, which lasts since ${String(since).slice(0, 19).replace('T', ' ')} UTC`,
    );
    expect(out).to.include('`trawl admin drain off`');
    await backUp();
    expect((await restore('--replace')).json.draining_since).to.equal(null);
  });

  it('name the accounts whose webhook secret neither value of TRAWL_SECRET opens, none where one does, and say where no value is known', async () => {
    const [then, now] = [randomBytes(32), randomBytes(32)];
    const { accountId, slug } = await anAccount(store);
    await anAccount(store);
    const sealed = makeSeal({ secret: then }).seal('webhook_secret', 'whsec_a');
    await setAccount(store, accountId, { webhook_secret: sealed });
    await backUp();
    const env = { TRAWL_REDIS_URL: target.url, TRAWL_DATA: home, TRAWL_SECRET: now.toString('base64') };
    const line = ['record', 'restore', backups, '--replace'];
    expect((await runBeside(line, env)).json.unreadable_secrets).to.deep.equal([slug]);
    expect((await sayBeside(line, env)).out).to.match(
      new RegExp(`TRAWL_SECRET was changed since: name its value of then in TRAWL_SECRET_OLD .*:\\n${slug}\\n`),
    );
    const both = { ...env, TRAWL_SECRET_OLD: then.toString('base64') };
    expect((await runBeside(line, both)).json.unreadable_secrets).to.deep.equal([]);
    const without = { TRAWL_REDIS_URL: target.url, TRAWL_DATA: join(home, 'another') };
    line.push('--without-files');
    expect((await runBeside(line, without)).json.unreadable_secrets).to.equal(null);
    expect((await sayBeside(line, without)).out).to.include('No TRAWL_SECRET is known here');
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

  it('are taken of a Redis whose memory is full, and noted, so that its limit can be raised without fear', async () => {
    await anAccount(store);
    await source.connection.send(['CONFIG', 'SET', 'maxmemory', '1']);
    try {
      const { taken_at } = await backUp();
      const noted = await source.connection.read(['HGETALL', keys.backup]);
      expect(noted).to.include.members(['begun_first', 'taken_at', String(Date.parse(taken_at))]);
    } finally {
      await source.connection.send(['CONFIG', 'SET', 'maxmemory', '0']);
    }
  });

  it('keep as many backups as are wanted, and remove what was broken off', async () => {
    for (let n = 0; n < 3; n++) await backUp();
    await mkdir(join(backups, '.partial-old'));
    const [hour, now] = [3_700, Date.now() / 1000];
    utimesSync(join(backups, '.partial-old'), now - hour, now - hour);
    await mkdir(join(backups, '.partial-new'));
    const { folder } = await backUp('--keep', '2');
    const left = readdirSync(backups).sort();
    expect(left).to.have.length(3);
    expect([left[0], join(backups, left[2]!)]).to.deep.equal(['.partial-new', folder]);
  });

  it('are complete although another one removes the same old backups at that moment', async () => {
    for (let n = 0; n < 12; n++) await backUp();
    const taken = await Promise.all(Array.from({ length: 4 }, () => backUp('--keep', '1')));
    for (const { keys: count } of taken) expect(count).to.be.greaterThan(0);
    expect(readdirSync(backups)).to.have.length(1);
  });

  it('take and keep the backup that was made last, although the clock was ahead when an earlier one was named', async () => {
    const { folder: early } = await backUp();
    renameSync(early, join(backups, new Date(Date.now() + 86_400_000).toISOString().replaceAll(/[:.]/g, '-')));
    const { slug } = await anAccount(store, { credits: 5 });
    const { folder } = await backUp('--keep', '1');
    expect(readdirSync(backups)).to.deep.equal([basename(folder)]);
    const { folder: last } = await backUp();
    expect((await restore()).code).to.equal(0);
    expect(readdirSync(backups).sort()).to.deep.equal([folder, last].map((path) => basename(path)));
    expect(await target.connection.read(['HGET', keys.slugs, slug])).to.be.a('string');
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
      [
        'of a later layout',
        () => writeFileSync(manifest, facts.replace(/"layout": \d+/, '"layout": 99')),
        /has layout 99, but release \S+ reads layout \d/,
      ],
      [
        'of no record',
        () => writeFileSync(manifest, facts.replace(/"keys": \d+/, '"keys": 0')),
        /has no key of a record/,
      ],
      ['without a snapshot', () => rmSync(snapshot), /record\.rdb cannot be read: ENOENT/],
    ];
    for (const [title, breakIt, sentence] of breaks) {
      breakIt();
      const { code, json } = await restoreFrom(folder);
      expect([code, title]).to.deep.equal([1, title]);
      expect(json.error, title).to.match(sentence);
      writeFileSync(snapshot, whole);
      writeFileSync(manifest, facts);
    }
    expect((await dumpRecord(target.url)).size).to.equal(0);
  });

  it('name a folder that cannot be written or made, without a stack trace', async () => {
    const file = join(home, 'file');
    writeFileSync(file, '');
    const why = { [join(file, 'below')]: 'ENOTDIR', '/proc/no-process': 'ENOENT', '/proc/no-process/below': 'ENOENT' };
    for (const [folder, reason] of Object.entries(why)) {
      const { code, json, err } = await runBeside(['record', 'backup', folder], {
        TRAWL_REDIS_URL: source.url,
        TRAWL_DATA: home,
      });
      expect([code, err]).to.deep.equal([1, '']);
      expect(json).to.deep.equal({ error: `The folder ${folder} cannot be written: ${reason}`, code: 'unavailable' });
    }
  });

  it('name the folder of the backups when its disk takes no more, not Redis', async () => {
    await endJobs(store, await makeAccounts(store, 3, 100), 50);
    // The kernel answers a longer write with an error when the signal that it sends first is ignored.
    const script = `trap '' XFSZ; ulimit -f 1; trawl admin record backup '${backups}'`;
    const { code, err } = await runInBash(script, { TRAWL_REDIS_URL: source.url, TRAWL_DATA: home });
    expect([code, err]).to.deep.equal([1, `The folder ${backups} cannot be written: EFBIG\n`]);
    expect(readdirSync(backups)).to.deep.equal([]);
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

  it('leave the object store out where it is lost too', async () => {
    await anAccount(store);
    await backUp();
    rmSync(join(home, 'objects'), { recursive: true });
    writeFileSync(join(home, 'objects'), 'not a folder');
    const refused = await restore();
    expect([refused.code, refused.json.code]).to.deep.equal([1, 'unavailable']);
    expect((await dumpRecord(target.url)).size).to.equal(0);
    expect((await restore('--without-files')).code).to.equal(0);
  });
});

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
