import { expect } from 'chai';
import { checkClock, checkFreeSpace, checkNode, checkRedis } from '../../src/admin/check-machine.ts';
import { checkClockDifference, checkMemory, checkStrayProxy } from '../../src/admin/check-record.ts';
import type { Finding } from '../../src/admin/doctor-finding.ts';
import { networks } from '../../src/base/settings/kinds.ts';
import { noteStrayProxy } from '../../src/store/access/stray-proxy.ts';
import { type Operator, runProgram, startOperator } from '../support/operator.ts';
import { root } from '../support/tree.ts';

/** A name that is no setting, made here because no file of the tree may spell one. */
const unknown = ['TRAWL', 'NONSENSE'].join('_');
const gib = 1024 ** 3;

function levelsOf(findings: readonly Finding[]): Record<string, string> {
  return Object.fromEntries(findings.map(({ about, level }) => [about, level]));
}

describe('the doctor', () => {
  for (const [title, finding, level, text] of [
    ['Node 24', checkNode('24.0.0'), 'ok', /24\.0\.0; 24 or newer/],
    ['an older Node', checkNode('22.9.0'), 'problem', /22\.9\.0/],
    ['Redis 7', checkRedis('7.0.0', 'problem'), 'ok', /7\.0\.0/],
    ['Redis 6', checkRedis('6.2.9', 'problem'), 'problem', /6\.2\.9; 7\.0 or newer/],
    ['no Redis where none is needed', checkRedis(null, 'note'), 'note', /not installed/],
    ['a clock of this century', checkClock(Date.UTC(2026, 5)), 'ok', /2026-06-01T00:00:00\.000Z/],
    ['a clock without a battery', checkClock(0), 'problem', /1970/],
    ['a clock far ahead', checkClock(Date.UTC(2100, 0)), 'problem', /2100/],
    ['enough room', checkFreeSpace(gib), 'ok', /1\.0 GiB free\.$/],
    ['little room', checkFreeSpace(gib - 1), 'note', /a full disk stops every new job/],
    ['clocks together', checkClockDifference(10_000, 9_999, 10_001), 'ok', /0\.0 s from ours/],
    ['clocks 2 s apart', checkClockDifference(10_000, 12_001, 10_001), 'ok', /2\.0 s/],
    ['Redis ahead', checkClockDifference(10_000, 12_002, 10_001), 'problem', /2\.0 s/],
    ['Redis behind', checkClockDifference(10_000, 7_900, 10_001), 'problem', /2\.1 s/],
    ['no stray proxy', checkStrayProxy(null, []), 'ok', /No proxy/],
    [
      'a stray proxy',
      checkStrayProxy('10.0.0.5', networks.read('10.0.0.6')!),
      'note',
      / 10\.0\.0\.5 forwards .* TRAWL_TRUSTED_PROXIES/,
    ],
    ['a proxy that is trusted by now', checkStrayProxy('10.0.0.5', networks.read('10.0.0.0/8')!), 'ok', /No proxy/],
    ['a stray proxy of IPv6', checkStrayProxy('fc00::1', networks.read('10.0.0.0/8')!), 'note', / fc00::1 forwards/],
    ['memory without limit', checkMemory(0), 'ok', /no memory limit/],
    ['memory with room', checkMemory(0.84), 'ok', /84 %/],
    ['memory that is full', checkMemory(0.85), 'problem', /85 % of its memory; from 85 % on new jobs are refused/],
  ] as const) {
    it(`judges ${title}`, () => {
      expect(finding).to.include({ level });
      expect(finding.text)
        .to.match(text)
        .and.match(/^[A-Zr].*\.$/);
    });
  }

  describe('beside a record', () => {
    let operator: Operator;
    before(async () => {
      operator = await startOperator({ fsync: 'everysec' });
    });
    after(() => operator.stop());

    it('finds what would lose charges, changes nothing, and exits with 1', async () => {
      const { code, out, err } = await operator.doctor(['--json']);
      const { ok, findings } = JSON.parse(out);
      expect({ code, ok, err }).to.deep.equal({ code: 1, ok: false, err: '' });
      const levels = levelsOf(findings);
      expect(levels).to.include({ settings: 'ok', node: 'ok', 'redis-server': 'ok', setpriv: 'ok', clock: 'ok' });
      expect(levels).to.include({ durability: 'problem', memory: 'ok' });
      expect(Object.keys(levels)).to.include.members(['ffmpeg', 'bwrap', 'disk']);
      const { text } = findings.find(({ about }: Finding) => about === 'durability');
      expect(text).to.equal('Redis may lose charges: appendfsync is everysec, set it to always.');
      expect(await operator.store.connection.send(['DBSIZE'])).to.equal(0);
    });

    it('D38: names a proxy that nobody configured, until it is trusted', async () => {
      await noteStrayProxy(operator.store, '10.0.0.5');
      const about = async (env: Record<string, string>) => {
        const { findings } = JSON.parse((await operator.doctor(['--json'], env)).out) as { findings: Finding[] };
        return findings.find(({ about }) => about === 'proxies');
      };
      expect(await about({})).to.deep.equal({
        level: 'note',
        about: 'proxies',
        text: 'A proxy at 10.0.0.5 forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: nobody behind it is ever blocked.',
      });
      expect(await about({ TRAWL_TRUSTED_PROXIES: '10.0.0.0/24' })).to.include({ level: 'ok' });
    });

    it('only notes it when the operator wants it so', async () => {
      const { code, out } = await operator.doctor([], { TRAWL_DURABILITY: 'relaxed' });
      expect(code).to.equal(0);
      expect(out)
        .to.match(/^verdict +about +finding\n/)
        .and.match(/^note +durability +Redis may lose/m);
    });

    it('admin refuses to work with it in strict, and does in relaxed', async () => {
      expect(await operator.refused('plan', 'list')).to.deep.equal({
        error:
          'Redis may lose charges: appendfsync is everysec, set it to always; TRAWL_DURABILITY=relaxed starts all the same',
        code: 'unavailable',
      });
      const relaxed = await operator.run(['plan', 'list', '--json'], { TRAWL_DURABILITY: 'relaxed' });
      expect(relaxed).to.deep.equal({ code: 0, out: '[]\n', err: '' });
    });

    it('tells every wrong setting at once, and so does admin', async () => {
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

  it('names the programs that are missing, and that no record is there', async () => {
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
  });

  it('only notes the programs of workers where these run elsewhere', async () => {
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
    const { flock, ffmpeg, setpriv, bucket } = levelsOf(JSON.parse(out).findings);
    expect([flock, ffmpeg, setpriv, bucket]).to.deep.equal(['note', 'note', 'note', 'problem']);
  });

  it('finds a data folder that cannot be made', async () => {
    const { code, out } = await runProgram(process.execPath, ['src/main.ts', 'doctor', '--json'], {
      TRAWL_DATA: `${root}/package.json/data`,
    });
    expect(code).to.equal(1);
    expect(levelsOf(JSON.parse(out).findings)).to.include({ 'data folder': 'problem' });
  });

  it('says when the record that is named does not answer', async () => {
    const env = { PATH: '', TRAWL_REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, out } = await runProgram(process.execPath, ['src/main.ts', 'doctor', '--json'], env);
    const { findings } = JSON.parse(out);
    expect(code).to.equal(1);
    expect(levelsOf(findings)).to.include({ 'redis-server': 'note', record: 'problem' });
  });
});
