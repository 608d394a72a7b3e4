import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkConnection } from '../../src/admin/check-record.ts';
import { keys } from '../../src/store/keys.ts';
import { prepareSchema } from '../../src/store/schema.ts';
import { dumpRecord, keysOfRestore, runBeside } from '../support/backups.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { anAccount, storeOf } from '../support/record.ts';
import { aFolder, startTestServer, type TestRecord } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';

const manyKeys = 20_000;
const ids = Array.from({ length: manyKeys }, (_, n) => `of ${n}`);
/** Settings of the doctor. */
const rules = { durability: 'relaxed', redisMemory: null, trustedProxies: [] } as const;
const content = 'x'.repeat(200);
/** Microseconds for which Redis waits at each key of a snapshot, and at none. */
const [slowly, fast] = ['100', '0'];

describe('a backup or a restore that is killed', () => {
  let source: TestRecord;
  let target: TestRecord;
  let home: { folder: string; remove: () => void };
  before(async () => {
    [source, target] = await Promise.all([startTestServer(), startTestServer()]);
    home = aFolder();
    const store = storeOf(source.connection);
    await prepareSchema(store);
    await anAccount(store, { credits: 5 });
    await source.connection.send(['MSET', ...ids.flatMap((id) => [keys.webhook(id), content])]);
  });
  after(async () => {
    await Promise.all([source.stop(), target.stop()]);
    home.remove();
  });

  const backups = () => join(home.folder, 'backups');
  const envOf = ({ url }: TestRecord) => ({
    TRAWL_REDIS_URL: url,
    TRAWL_DATA: home.folder,
    TRAWL_DURABILITY: 'relaxed',
  });
  const partial = () => (existsSync(backups()) ? readdirSync(backups()) : []).filter((name) => name.startsWith('.'));

  it('leaves no backup behind that looks whole, and hinders no later one', async () => {
    await source.connection.send(['CONFIG', 'SET', 'rdb-key-save-delay', slowly]);
    const child = start(['record', 'backup', backups()], envOf(source));
    await until(() => partial().length > 0, 20, 'the backup begins');
    await kill(child);
    expect(readdirSync(backups())).to.deep.equal(partial());
    const refused = await runBeside(['record', 'restore', backups()], envOf(target));
    expect([refused.code, refused.json.error]).to.deep.equal([1, `There is no complete backup in ${backups()}`]);
    await source.connection.send(['CONFIG', 'SET', 'rdb-key-save-delay', fast]);
    const { code, json } = await runBeside(['record', 'backup', backups()], envOf(source));
    expect([code, json.keys > manyKeys]).to.deep.equal([0, true]);
  });

  it('fails a restore that stood still for longer than its lease, and keeps the record closed', async () => {
    const line = ['record', 'restore', backups(), '--without-files'];
    const child = start(line, envOf(target));
    const isBegun = async () => (await target.connection.send(['EXISTS', keys.restoring])) === 1;
    await until(isBegun, 20, 'the restore begins');
    const thaw = await freezeProcess(child.pid!);
    const ended = once(child, 'exit');
    await target.connection.send(['DEL', keys.restoreLease]);
    thaw();
    expect(await ended).to.deep.equal([1, null]);
    expect(await isBegun(), 'the record is closed').to.equal(true);
    await target.flush();
  });

  it('leaves a record that nothing opens until the restore is repeated', async () => {
    const line = ['record', 'restore', backups(), '--without-files'];
    const child = start(line, envOf(target));
    const isBegun = async () => (await target.connection.send(['EXISTS', keys.restoring])) === 1;
    await until(isBegun, 20, 'the restore begins');
    await kill(child);
    expect(await isBegun(), 'it was killed in its middle').to.equal(true);
    const doctor = await checkConnection(target.connection, rules);
    expect(doctor.find(({ about }) => about === 'restore')?.level).to.equal('note');
    const opened = await runBeside(['account', 'list'], envOf(target));
    expect([opened.code, opened.json.error]).to.deep.equal([
      1,
      'The record is being restored: wait for its end, or repeat a restore that was broken off',
    ]);
    const early = await runBeside(line, envOf(target));
    expect([early.code, early.json.code], 'it may still run').to.deep.equal([1, 'in_use']);
    // As Redis does 60 s after the restore renewed it last.
    await target.connection.send(['DEL', keys.restoreLease]);
    const closed = await checkConnection(target.connection, rules);
    expect(closed.find(({ about }) => about === 'restore')).to.deep.equal({
      level: 'problem',
      about: 'restore',
      text: 'The record is being restored: wait for its end, or repeat a restore that was broken off.',
    });
    const { code, json } = await runBeside(line, envOf(target));
    expect(code).to.equal(0);
    expect(json.keys).to.be.greaterThan(manyKeys);
    const texts = (await target.connection.send(['MGET', ...ids.map(keys.webhook)])) as string[];
    expect(texts.every((text) => text === content)).to.equal(true);
    for (const { connection } of [source, target]) await connection.send(['UNLINK', ...ids.map(keys.webhook)]);
    const [before, after] = [await dumpRecord(source.url), await dumpRecord(target.url)];
    for (const dump of [before, after]) for (const name of keysOfRestore) dump.delete(name);
    expect([...after]).to.deep.equal([...before]);
    expect((await runBeside(['account', 'list'], envOf(target))).code).to.equal(0);
  });
});

function start(line: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  const args = [join(root, 'src/main.ts'), 'admin', ...line];
  return spawn(process.execPath, args, { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' });
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  expect(child.signalCode, 'it had not ended before').to.equal('SIGKILL');
}
