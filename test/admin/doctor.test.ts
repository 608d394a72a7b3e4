import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkMachine } from '../../src/admin/check-machine.ts';
import { checkBilling, checkTls } from '../../src/admin/check-settings.ts';
import type { Finding } from '../../src/admin/doctor-finding.ts';
import { readConfig } from '../../src/base/config.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { beginDrain, endDrain } from '../../src/store/access/drain.ts';
import { noteStrayProxy } from '../../src/store/access/stray-proxy.ts';
import { makeCertificate } from '../support/certificate.ts';
import { mountSmall, unmount, whyNoMounts } from '../support/mount.ts';
import { type Operator, runProgram, startOperator } from '../support/operator.ts';
import { anAccount } from '../support/record.ts';
import { aFolder } from '../support/redis.ts';
import { makeTlsFiles } from '../support/tls-files.ts';
import { root } from '../support/tree.ts';

/** A name that is no setting, made here because no file of the tree may spell one. */
const unknown = ['TRAWL', 'NONSENSE'].join('_');
const gib = 1024 ** 3;

function levelsOf(findings: readonly Finding[]): Record<string, string> {
  return Object.fromEntries(findings.map(({ about, level }) => [about, level]));
}

const shop = {
  stripeKey: 'sk_test_1',
  stripeWebhookSecret: 'whsec_1',
  smtpUrl: 'smtp://mail',
  sellerName: 'A',
  sellerAddress: 'B',
  sellerTax: 'C',
};

describe('the doctor', () => {
  it('judges the certificates of TLS between the parts, their end, their key and their authorities', () => {
    const files = makeTlsFiles('first', ['egress.media.svc']);
    try {
      const { certFile: tlsCertFile, keyFile: tlsKeyFile, caFile: tlsCaFile } = files;
      const config = { ...readConfig({}), tlsCertFile, tlsKeyFile, tlsCaFile };
      const judged = (now: number) => checkTls(config, now).map(({ level, text }) => `${level} ${text}`);
      const [served, trusted] = judged(Date.UTC(2026, 0));
      expect(served).to.match(/^ok .* for DNS:egress\.media\.svc is valid until 2049-12-31T23:59:59\.000Z\.$/);
      expect(trusted).to.match(/^ok .* names 1 authorities, 1 of them valid\.$/);
      const soon = judged(Date.UTC(2049, 11, 28));
      expect(soon[0]).to.match(/^note .*: renew it now\.$/);
      expect(soon[1]).to.match(/^note .*, until 2049-12-31T23:59:59\.000Z: renew them now\.$/);
      expect(judged(Date.UTC(2051, 0)).map((text) => text.replace(/ .*: /, ' '))).to.deep.equal([
        'problem it has ended, so no part trusts this one. Renew it.',
        'problem no part can be reached. Name one that is valid.',
      ]);
      files.write({ key: makeCertificate('other').key });
      expect(judged(Date.UTC(2026, 0))[0]).to.match(/^problem .* hold no certificate with its key: .*mismatch/);
      expect(checkTls({ ...config, tlsCertFile: null, tlsKeyFile: null, tlsCaFile: null }, 0)).to.deep.equal([]);
    } finally {
      files.remove();
    }
  });

  const why = whyNoMounts();
  if (why !== null) console.warn(`The test of a full disk of files is left out: ${why}`);
  else
    it('names a part of the data folder whose own disk is full, although that of the data folder is not', async () => {
      const { folder: data, remove } = aFolder();
      const objects = join(data, 'objects');
      mkdirSync(objects);
      mountSmall(objects, 2 ** 20);
      try {
        const findings = await checkMachine({ ...readConfig({}), data });
        const disks = findings.filter(({ about }) => about === 'disk').map(({ level, text }) => `${level} ${text}`);
        expect(disks).to.have.length(2);
        expect(disks[0]).to.match(/^ok The file system of the data folder has \d+\.\d GiB free\.$/);
        expect(disks[1]).to.equal(
          `note The file system of ${objects} has 0.0 GiB free: a full disk stops every new job.`,
        );
      } finally {
        unmount(objects);
        remove();
      }
    });

  it('judges invoices and mail only where something can be bought', () => {
    expect(checkBilling({ ...shop, stripeKey: null, stripeWebhookSecret: null })).to.deep.equal([]);
    expect(levelsOf(checkBilling({ ...shop, stripeKey: null }))).to.deep.equal({ payments: 'note' });
    expect(levelsOf(checkBilling(shop))).to.deep.equal({ payments: 'ok', invoices: 'ok' });
    const poor = { ...shop, stripeWebhookSecret: null, smtpUrl: null, sellerName: null, sellerTax: null };
    const [payments, invoices, mail] = checkBilling(poor);
    expect(payments).to.include({ level: 'note' });
    expect(invoices).to.include({ level: 'note' });
    expect(invoices?.text).to.include('TRAWL_SELLER_NAME, TRAWL_SELLER_TAX');
    expect(mail).to.include({ level: 'note' });
  });

  describe('beside a record', () => {
    let operator: Operator;
    before(async () => {
      operator = await startOperator({ fsync: 'everysec', maxMemoryBytes: gib });
    });
    after(() => operator.stop());

    it('reports a Redis that may lose charges, changes nothing, and exits with 1', async () => {
      const { code, out, err } = await operator.doctor(['--json']);
      const { ok, findings } = JSON.parse(out);
      expect({ code, ok, err }).to.deep.equal({ code: 1, ok: false, err: '' });
      const levels = levelsOf(findings);
      expect(levels).to.include({ settings: 'ok', node: 'ok', 'redis-server': 'ok', setpriv: 'ok', clock: 'ok' });
      expect(levels).to.include({ durability: 'problem', memory: 'ok' });
      expect(Object.keys(levels)).to.include.members(['ffmpeg', 'bwrap', 'landlock', 'disk']);
      const { text } = findings.find(({ about }: Finding) => about === 'durability');
      expect(text).to.equal('Redis may lose charges: appendfsync is everysec, set it to always.');
      expect(await operator.store.connection.send(['DBSIZE'])).to.equal(0);
    });

    it('D38: names a stray proxy until it is trusted', async () => {
      await noteStrayProxy(operator.store, '10.0.0.5');
      const about = async (env: Record<string, string>) => {
        const { findings } = JSON.parse((await operator.doctor(['--json'], env)).out) as { findings: Finding[] };
        return findings.find(({ about }) => about === 'proxies');
      };
      expect(await about({})).to.deep.equal({
        level: 'note',
        about: 'proxies',
        text: 'A proxy at 10.0.0.5 forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: name it there, because nobody behind it is ever blocked.',
      });
      expect(await about({ TRAWL_TRUSTED_PROXIES: '10.0.0.0/24' })).to.include({ level: 'ok' });
    });

    it('notes a drain and since when it lasts', async () => {
      await beginDrain(operator.store);
      const drain = async () => {
        const { findings } = JSON.parse((await operator.doctor(['--json'])).out) as { findings: Finding[] };
        return findings.find(({ about }) => about === 'drain');
      };
      const found = await drain();
      expect(found?.level).to.equal('note');
      expect(found?.text).to.match(
        /^Since 20\d\d-.*Z a drain lasts: new jobs and calls get 503 until `trawl admin drain off`\.$/,
      );
      await endDrain(operator.store);
      expect(await drain()).to.include({ level: 'ok' });
    });

    it('names accounts whose webhook secret no TRAWL_SECRET opens', async () => {
      const [secret, former] = [randomBytes(32), randomBytes(32)];
      const seal = (key: Buffer) => makeSeal({ secret: key }).seal('webhook_secret', 'whsec_x');
      await anAccount(operator.store, { webhook_secret: seal(secret) });
      const lost: string[] = [];
      for (let n = 0; n < 6; n++) lost.push((await anAccount(operator.store, { webhook_secret: seal(former) })).slug);
      const about = async (env: Record<string, string>) => {
        const { findings } = JSON.parse((await operator.doctor(['--json'], env)).out) as { findings: Finding[] };
        return findings.find(({ about }) => about === 'webhook secrets');
      };
      expect(await about({}), 'without a secret to try').to.equal(undefined);
      const [TRAWL_SECRET, TRAWL_SECRET_OLD] = [secret.toString('base64'), former.toString('base64')];
      const found = await about({ TRAWL_SECRET });
      expect(found?.level).to.equal('note');
      const [, named = ''] =
        /^Webhooks of (.*) and 1 more fail, because TRAWL_SECRET was changed/.exec(found?.text ?? '') ?? [];
      expect(lost).to.include.members(named.split(', '));
      expect(await about({ TRAWL_SECRET, TRAWL_SECRET_OLD })).to.include({ level: 'ok' });
    });

    it('only notes a Redis that may lose charges with TRAWL_DURABILITY=relaxed', async () => {
      const { code, out } = await operator.doctor([], { TRAWL_DURABILITY: 'relaxed' });
      expect(code).to.equal(0);
      expect(out)
        .to.match(/^verdict +about +finding\n/)
        .and.match(/^note +durability +Redis may lose/m);
    });

    it('admin refuses a Redis that may lose charges, unless TRAWL_DURABILITY is relaxed', async () => {
      expect(await operator.refused('plan', 'list')).to.deep.equal({
        error:
          'Redis may lose charges: appendfsync is everysec, set it to always; TRAWL_DURABILITY=relaxed starts all the same',
        code: 'unavailable',
      });
      const relaxed = await operator.run(['plan', 'list', '--json'], { TRAWL_DURABILITY: 'relaxed' });
      expect(relaxed).to.deep.equal({ code: 0, out: '[]\n', err: '' });
    });

    it('names every wrong setting at once, and so does admin', async () => {
      const env = { [unknown]: '1', TRAWL_WORKERS: 'many' };
      const { code, out } = await operator.doctor(['--json'], env);
      const problems = JSON.parse(out).findings.filter(({ level }: Finding) => level === 'problem');
      expect(code).to.equal(1);
      expect(problems.map(({ about, text }: Finding) => `${about}: ${text.split(' ')[0]}`)).to.deep.equal([
        `settings: ${unknown}`,
        'settings: TRAWL_WORKERS',
      ]);
      const admin = await operator.run(['plan', 'list', '--json'], env);
      const { error, code: word } = JSON.parse(admin.out);
      expect({ code: admin.code, word }).to.deep.equal({ code: 1, word: 'config' });
      expect(error).to.contain(`${unknown} is not a setting of trawl.\nTRAWL_WORKERS must be`);
    });
  });

  it('names the missing programs and the missing record', async () => {
    // Without the launcher, which needs programs itself.
    const { code, out } = await runProgram(process.execPath, ['src/main.ts', 'doctor', '--json'], {
      PATH: '',
      TRAWL_DATA: `${root}/nowhere`,
    });
    const { findings } = JSON.parse(out);
    expect(code).to.equal(1);
    expect(levelsOf(findings)).to.include({
      'redis-server': 'problem',
      setpriv: 'problem',
      flock: 'problem',
      ffmpeg: 'problem',
      ffprobe: 'problem',
      bwrap: 'note',
      record: 'note',
    });
    const texts = findings.map(({ text }: Finding) => text);
    expect(texts).to.include('ffmpeg is not installed: workers convert and check files with it.');
    const own = process.getuid?.() === 0 ? 'landlock-user' : 'landlock';
    expect(texts.join()).to.include(`without it, the isolation of children is ${own} (docs/images.md)`);
  });

  it('judges the cluster, and no program of this machine, when workers run in one', async () => {
    const elsewhere = {
      TRAWL_RUNNER: 'kubernetes',
      TRAWL_KUBE_NAMESPACE: 'jobs',
      TRAWL_WORKER_IMAGE: 'registry.test/worker:1',
      TRAWL_GATEWAY_ADDRESS: 'http://gateway.test:8082',
      TRAWL_EGRESS_ADDRESS: 'http://egress.test:3128',
      TRAWL_OBJECTS: 's3',
      TRAWL_S3_BUCKET: 'media',
    };
    const nobody = { TRAWL_REDIS_URL: 'redis://127.0.0.1:1', TRAWL_S3_ENDPOINT: 'http://127.0.0.1:1' };
    const env = { PATH: '', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', ...nobody, ...elsewhere };
    const { out } = await runProgram(process.execPath, ['src/main.ts', 'doctor', '--json'], env);
    const { ffmpeg = 'unseen', cluster, dns, egress, bucket } = levelsOf(JSON.parse(out).findings);
    const judged = { ffmpeg, cluster, dns, egress, bucket };
    const problems = { cluster: 'problem', dns: 'problem', egress: 'problem', bucket: 'problem' };
    expect(judged).to.deep.equal({ ffmpeg: 'unseen', ...problems });
  });

  // A process of root may write everywhere by its rights, and yet make nothing below /proc.
  for (const data of [`${root}/package.json/data`, '/proc/data']) {
    it(`reports a data folder that cannot be created: ${data.replace(root, '…')}`, async () => {
      const { code, out } = await runProgram(process.execPath, ['src/main.ts', 'doctor', '--json'], {
        TRAWL_DATA: data,
      });
      expect(code).to.equal(1);
      expect(levelsOf(JSON.parse(out).findings)).to.include({ 'data folder': 'problem' });
    });
  }

  it('reports a configured Redis that does not answer', async () => {
    const env = { PATH: '', TRAWL_REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, out } = await runProgram(process.execPath, ['src/main.ts', 'doctor', '--json'], env);
    const { findings } = JSON.parse(out);
    expect(code).to.equal(1);
    expect(levelsOf(findings)).to.include({ 'redis-server': 'note', record: 'problem' });
  });
});
