import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { runCommand as runAdmin } from '../../src/admin/admin.ts';
import { reportError } from '../../src/admin/command-io.ts';
import { runCommand as runDoctor } from '../../src/admin/doctor.ts';
import type { Terminal } from '../../src/base/terminal.ts';
import { keys } from '../../src/store/keys.ts';
import { connect } from '../../src/store/redis/connection.ts';
import { makeAuthority, makeCertificate } from '../support/certificate.ts';
import { startCutRedis } from '../support/cut-redis.ts';
import { freePort } from '../support/free-port.ts';
import { aLog, patient, startTestRedis, startTestServer, type TestRecord, type TestRedis } from '../support/redis.ts';
import { makeRedisUser } from '../support/redis-rights.ts';
import { until } from '../support/until.ts';

const secret = 'not-for-the-screen';

/** Runs a command with a Redis, and returns its exit code and all that it said. */
async function saidBy(
  command: (terminal: Terminal) => Promise<number> | number,
  TRAWL_REDIS_URL = '',
): Promise<{ code: number; said: string }> {
  let said = '';
  const write = (text: string) => {
    said += text;
  };
  const code = await command({ out: write, err: write, isWatched: false, env: { TRAWL_REDIS_URL } });
  expect(said).not.to.contain(secret);
  return { code, said };
}

/** Returns level and text of what the doctor finds about changes. */
async function changesOf(url: string): Promise<string[]> {
  const { said } = await saidBy((terminal) => runDoctor([], terminal), url);
  return /^(\w+) +changes +(.*)$/m.exec(said)?.slice(1) ?? [];
}

const admin = (url: string, ...line: string[]) => saidBy((terminal) => runAdmin(line, terminal), url);

describe('a command that Redis refuses', () => {
  let server: TestRecord;
  let redis: TestRedis;
  const send = (...words: string[]) => server.connection.send(words);
  before(async () => {
    [server, redis] = await Promise.all([startTestServer(), startTestRedis()]);
    expect(await admin(server.url, 'plan', 'set', 'basic', '--quota', '5')).to.include({ code: 0 });
  });
  after(() => Promise.all([server.stop(), redis.stop()]));

  it('names a wrong password and a missing one, and the setting to correct', async () => {
    const at = server.url.replace('redis://', '');
    const withLogin = (login: string) => admin(server.url.replace('://', `://${login}@`), 'plan', 'list');
    expect(await withLogin(`nobody:${secret}`)).to.deep.equal({
      code: 1,
      said: `Redis at ${at} refuses: WRONGPASS invalid username-password pair or user is disabled: correct user and password in TRAWL_REDIS_URL\n`,
    });
    await send('ACL', 'SETUSER', 'default', 'resetpass', `>${secret}`);
    const missing = await admin(server.url, 'plan', 'list');
    await send('ACL', 'SETUSER', 'default', 'nopass');
    expect(missing).to.deep.equal({
      code: 1,
      said: `Redis at ${at} refuses: NOAUTH Authentication required: correct user and password in TRAWL_REDIS_URL\n`,
    });
  });

  it('names a right that the user of Redis lacks, without a stack', async () => {
    const url = await makeRedisUser(server, {
      user: 'bob',
      password: secret,
      rights: ['on', '~*', '&*', '+@all', '-evalsha'],
    });
    const { code, said } = await admin(url, 'plan', 'list');
    expect(code).to.equal(1);
    expect(said).to.match(/^Redis refuses: NOPERM .*'evalsha'.*: give .* docs\/operate\.md.*\n$/);
  });

  it('names a port where nothing listens, a host without an address and a certificate without trust', async () => {
    const refused = await admin(`redis://:${secret}@localhost:${await freePort()}`, 'plan', 'list');
    expect(refused.said).to.match(/^Redis cannot be reached at localhost:\d+: .*ECONNREFUSED.*: start Redis, or .*\n$/);
    // The resolver refuses a label of 64 characters by itself and asks no server.
    const unknown = await admin(`redis://:${secret}@${'x'.repeat(64)}.invalid:6379`, 'plan', 'list');
    expect(unknown.said).to.match(/^Redis cannot be reached at .*ENOTFOUND.*: correct the host .*\n$/);
    const tls = createServer(makeCertificate('localhost')).listen(0, '127.0.0.1');
    await once(tls, 'listening');
    const url = `rediss://:${secret}@localhost:${(tls.address() as AddressInfo).port}`;
    const untrusted = await admin(url, 'plan', 'list');
    const doctor = await saidBy((terminal) => runDoctor([], terminal), url);
    tls.close();
    expect(untrusted.said).to.match(
      /^Redis cannot be reached at .*: self-signed certificate.*NODE_EXTRA_CA_CERTS.*\n$/,
    );
    expect(doctor.said).to.match(
      /problem +record +Redis cannot be reached at .*: self-signed certificate.*NODE_EXTRA_/,
    );
  });

  it('names a certificate of Redis that has ended, and no setting, which is right', async () => {
    const authority = makeAuthority('the authority of Redis');
    const trusted = getCACertificates();
    const ended = { name: 'localhost', hosts: ['localhost'], ends: new Date('2021-01-01T00:00:00Z') };
    const tls = createServer(authority.issue(ended)).listen(0, '127.0.0.1');
    await once(tls, 'listening');
    setDefaultCACertificates([...trusted, authority.cert]);
    const url = `rediss://:${secret}@localhost:${(tls.address() as AddressInfo).port}`;
    const { said } = await admin(url, 'plan', 'list').finally(() => {
      setDefaultCACertificates(trusted);
      tls.close();
    });
    expect(said).to.match(
      /^Redis cannot be reached at localhost:\d+: certificate has expired: renew the certificate of Redis, or correct the clock of this machine\n$/,
    );
  });

  it('names a layout of the record that is no number, without a stack, as the doctor does', async () => {
    await send('SET', keys.schema, 'five');
    const listed = await admin(server.url, 'plan', 'list');
    const doctor = await saidBy((terminal) => runDoctor([], terminal), server.url);
    await send('DEL', keys.schema);
    expect(listed.code).to.equal(1);
    expect(listed.said).to.match(/^The layout of the record is no number \(key \{trawl\}:schema\): .*\n$/);
    expect(doctor.said).to.match(/problem +layout +The layout of the record is no number/);
  });

  it('names memory that is full, as text and as JSON', async () => {
    await send('CONFIG', 'SET', 'maxmemory', '1');
    const plain = await admin(server.url, 'account', 'create', 'films', '--name', 'Films');
    const json = await admin(server.url, 'account', 'create', 'films', '--name', 'Films', '--json');
    await send('CONFIG', 'SET', 'maxmemory', '0');
    const sentence = /^Redis refuses: OOM .*: raise maxmemory .*$/;
    expect(plain.said.trimEnd()).to.match(sentence);
    expect(JSON.parse(json.said).error).to.match(sentence);
    expect(JSON.parse(json.said).code).to.equal('unavailable');
  });

  it('names a disk that cannot be written', async () => {
    const [, folder] = (await send('CONFIG', 'GET', 'dir')) as string[];
    // A folder stands where the file of the snapshot belongs.
    mkdirSync(join(folder!, 'dump.rdb', 'full'), { recursive: true });
    await send('CONFIG', 'SET', 'save', '3600 1');
    await send('BGSAVE');
    const isBroken = async () => String(await send('INFO', 'persistence')).includes('rdb_last_bgsave_status:err');
    await until(isBroken, 10, 'the snapshot has failed');
    const { code, said } = await admin(server.url, 'plan', 'set', 'small', '--quota', '3');
    await send('CONFIG', 'SET', 'save', '');
    expect(code).to.equal(1);
    expect(said).to.match(/^Redis at \S+ refuses: MISCONF .*: .*disk.*\n$/);
  });

  it('is told by the doctor that the user of Redis may read alone', async () => {
    const rights = ['on', '~*', '&*', '+@all', '-@write'];
    const [level, text] = await changesOf(await makeRedisUser(server, { user: 'eve', password: secret, rights }));
    expect(level).to.equal('problem');
    expect(text).to.match(/^Redis takes no changes: NOPERM .*: give this user the rights .*\.$/);
  });

  it('is told by the doctor that Redis is a replica, or lacks its replicas, and what to do', async () => {
    const changes = () => changesOf(server.url);
    expect(await changes()).to.deep.equal(['ok', 'Redis takes changes.']);
    await send('REPLICAOF', '127.0.0.1', '1');
    const [readOnly, advice] = await changes();
    await send('REPLICAOF', 'NO', 'ONE');
    expect(readOnly).to.equal('problem');
    expect(advice).to.match(
      /^Redis takes no changes: READONLY: TRAWL_REDIS_URL names a replica: name the primary, .* there\.$/,
    );
    await send('CONFIG', 'SET', 'min-replicas-to-write', '1');
    const alone = await changes();
    await send('CONFIG', 'SET', 'min-replicas-to-write', '0');
    expect(alone).to.deep.equal([
      'problem',
      'Redis takes no changes: NOREPLICAS Not enough good replicas to write: bring the primary and its replicas together again.',
    ]);
  });

  it('names a replica and a lost answer, after which the change may have been made', async () => {
    const at = await connect(server.url, { log: aLog().log, ...patient });
    await send('REPLICAOF', '127.0.0.1', '1');
    const readOnly = await at.send(['SET', '{trawl}:test', '1']).catch((error) => error);
    await send('REPLICAOF', 'NO', 'ONE');
    await at.close();
    const report = (error: unknown) => saidBy((terminal) => reportError(error, false, terminal));
    expect((await report(readOnly)).said).to.match(/^Redis refuses: READONLY .*: TRAWL_REDIS_URL names a replica.*\n$/);
    const proxy = await startCutRedis(redis);
    proxy.cutAt('INCR');
    const cut = await connect(proxy.url, { log: aLog().log, ...patient });
    const lost = await cut.send(['INCR', '{trawl}:test']).catch((error) => error);
    await cut.close();
    await proxy.stop();
    const { code, said } = await report(lost);
    expect(code).to.equal(1);
    expect(said).to.match(/^Redis did not answer: .*Socket closed.*The change may have been made all the same.*\n$/);
  });
});
