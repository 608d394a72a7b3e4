import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Operator, runProgram, startOperator, trawl } from '../support/operator.ts';
import { read } from '../support/tree.ts';

/** Tells on stderr when a package is loaded. */
const watchRedis = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({ resolve: (name, context, next) => {
    if (name.startsWith('@redis/client/dist/lib/client/')) console.error('the client of Redis is loaded');
    return next(name, context);
  } });
`)}`;

describe('./trawl', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator();
  });
  after(() => operator.stop());

  it('lists its commands, with exit code 0 for --help and 2 for wrong usage', async () => {
    const [help, none, wrong, option] = await Promise.all(
      [['--help'], [], ['nonsense'], ['--nonsense']].map((args) => trawl(args)),
    );
    expect(help).to.include({ code: 0, err: '' });
    expect(help!.out)
      .to.match(/^Usage: trawl COMMAND …\n/)
      .and.match(/^ {2}doctor +Judge/m)
      .and.match(/^ {2}admin +Plans/m);
    expect(none).to.deep.equal({ code: 2, out: '', err: help!.out });
    expect(wrong).to.deep.equal({ code: 2, out: '', err: `There is no command nonsense\n\n${help!.out}` });
    expect(option!.err).to.match(/^There is no command --nonsense\n/);
  });

  it('prints its version, which is that of the package', async () => {
    const { version } = JSON.parse(read('package.json'));
    expect(await trawl(['--version'])).to.deep.equal({ code: 0, out: `trawl ${version}\n`, err: '' });
  });

  it('prints help at every level without loading the client of Redis', async () => {
    for (const args of [['admin'], ['admin', 'key'], ['admin', 'key', 'create'], ['doctor']]) {
      const { code, out, err } = await trawl([...args, '--help'], { NODE_OPTIONS: watchRedis });
      expect({ code, err }, args.join(' ')).to.deep.equal({ code: 0, err: '' });
      expect(out).to.match(/^Usage: trawl (admin|doctor)/);
    }
    const { err } = await trawl(['admin', 'plan', 'list'], { NODE_OPTIONS: watchRedis, TRAWL_DATA: operator.data });
    expect(err).to.equal('the client of Redis is loaded\n');
  });

  it('prints the usage of every role', async () => {
    const roles = (await trawl(['--help'])).out.match(/^ {2}\w+/gm)!.map((name) => name.trim());
    expect(roles).to.include.members(['up', 'worker', 'inspector', 'egress']);
    for (const role of roles) {
      const { code, out, err } = await trawl([role, '--help']);
      expect({ role, code, err }).to.deep.equal({ role, code: 0, err: '' });
      expect(out).to.match(new RegExp(`^Usage: trawl ${role}\\b`));
    }
  });

  it('D88: prints one JSON value with --json at any place', async () => {
    const env = { TRAWL_DATA: operator.data };
    const made = await trawl(['--json', 'admin', 'plan', 'set', 'small', '--quota', '3'], env);
    expect(made).to.include({ code: 0, err: '' });
    expect(JSON.parse(made.out)).to.include({ name: 'small', quota: 3 });
    const listed = await trawl(['admin', '--json', 'plan', 'list'], env);
    expect(listed).to.deep.equal({ code: 0, out: `[${made.out.trim()}]\n`, err: '' });
  });

  it('exits with 2 and a sentence for wrong usage, with --json too', async () => {
    const [plain, json, doctor, first] = await Promise.all([
      trawl(['admin', 'plan', 'set', 'x', '--quota', '-1']),
      trawl(['admin', 'nonsense', '--json']),
      trawl(['doctor', '--nonsense']),
      trawl(['bootstrap', '--new-key', '--json']),
    ]);
    expect(plain).to.deep.equal({
      code: 2,
      out: '',
      err: '--quota needs a value; one that begins with - is written --quota=-1\nUsage: trawl admin plan set NAME [options]\n',
    });
    expect([json.code, JSON.parse(json.out).code]).to.deep.equal([2, 'usage']);
    expect(json.err).to.match(/^There is no group nonsense/);
    const usage = 'Usage: trawl doctor [--policies] [--json]';
    expect(doctor).to.include({ code: 2, err: `Unknown option '--nonsense'\n${usage}\n` });
    // Its standard output is the file of a key, and never JSON.
    expect([first.code, first.out, first.err.split('\n')[0]]).to.deep.equal([2, '', "Unknown option '--json'"]);
  });

  it('exits with 1 and a sentence when there is no record, or Redis does not answer', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    const env = { TRAWL_DATA: join(folder, 'nowhere') };
    const [none, away] = await Promise.all([
      trawl(['admin', 'account', 'list', '--json'], env),
      trawl(['admin', 'account', 'list'], { TRAWL_REDIS_URL: 'redis://127.0.0.1:1' }),
    ]);
    rmSync(folder, { recursive: true });
    expect(none).to.include({ code: 1, err: '' });
    expect(JSON.parse(none.out)).to.deep.equal({
      error: `No record found: TRAWL_REDIS_URL is not set, and no trawl up runs in ${env.TRAWL_DATA} (TRAWL_DATA)`,
      code: 'unavailable',
    });
    expect(away).to.include({ code: 1, out: '' });
    // A command that could not even try within 1.5 s, on a busy machine, says before that Redis does not answer yet.
    expect(away.err).to.match(/^(?:Redis does not answer yet, .*\n)?Redis cannot be reached at 127\.0\.0\.1:1: .*\n$/);
  });

  it('exits with 1 and the code of the refusal when a command is refused', async () => {
    const env = { TRAWL_DATA: operator.data };
    const refused = await trawl(['admin', 'plan', 'remove', 'nonsense', '--json'], env);
    expect(refused).to.deep.equal({
      code: 1,
      out: '{"error":"There is no plan nonsense","code":"not_found"}\n',
      err: '',
    });
  });

  it('exits with 1 and the reason when its answer cannot be written', async () => {
    const env = { PATH: process.env.PATH!, TRAWL_DATA: operator.data };
    for (const words of ['account open lost --json', 'account list']) {
      const full = await runProgram('sh', ['-c', `./trawl admin ${words} > /dev/full`], env);
      const err = 'Standard output cannot be written: ENOSPC: no space left on device, write\n';
      expect(full, words).to.deep.equal({ code: 1, out: '', err });
    }
  });
});
