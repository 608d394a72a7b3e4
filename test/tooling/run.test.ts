import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { root } from '../support/tree.ts';

const cases = [
  ['good', 'counts what passed', `it('a', () => {});`, 0, '1 passed, 0 failed'],
  [
    'bad',
    'counts what failed',
    `it('a', () => {}); it('b', () => { throw new Error('b'); });`,
    1,
    '1 passed, 1 failed',
  ],
  ['empty', 'fails when nothing ran', `describe('a', () => {});`, 1, '0 passed, 0 failed'],
  ['pending', 'fails when a test is left out', `it('a', () => {}); it('b');`, 1, '1 passed, 1 failed'],
  ['crash', 'fails when the process ends early', `it('a', () => process.exit(0));`, 1, '0 passed, 1 failed'],
  [
    'hook',
    'counts a hook that failed',
    `describe('a', () => { before(() => { throw new Error('no room'); }); it('b', () => {}); it('c', () => {}); });`,
    1,
    '0 passed, 1 failed',
  ],
  [
    'killed',
    'fails when the process is killed, and keeps what had failed before',
    `it('a', () => { throw new Error('a'); }); it('b', () => process.kill(process.pid, 'SIGKILL'));`,
    1,
    '0 passed, 2 failed',
  ],
  ['unread', 'fails when a file cannot be read', `throw new Error('no');`, 1, '0 passed, 1 failed'],
  [
    'rejected',
    'fails when nobody handles a rejection',
    `it('a', () => void Promise.reject(new Error('no')));`,
    1,
    '1 passed, 1 failed',
  ],
  ['open', 'fails when a timer is left', `it('a', () => { setInterval(() => {}, 1000); });`, 1, '1 passed, 1 failed'],
  [
    'child',
    'fails when a process is left',
    `import { spawn } from 'node:child_process'; it('a', () => spawn('sleep', ['900'], { stdio: 'ignore', detached: true }).unref());`,
    1,
    '1 passed, 1 failed',
  ],
  [
    'file',
    'fails when a temporary file is left',
    `import { mkdtempSync } from 'node:fs'; it('a', () => { mkdtempSync(process.env.TMPDIR + '/trawl-test-'); });`,
    1,
    '1 passed, 1 failed',
  ],
  [
    'cluster',
    'adds up files that run side by side',
    `it('a', () => {}); it('b', () => { throw new Error('b'); });`,
    1,
    '2 passed, 1 failed',
  ],
  [
    'list',
    'fails for a list that is not empty',
    `import { expect } from 'chai'; it('a', () => expect(['src/model/first.ts: 301 lines', 'src/model/other.ts: 302 lines']).to.deep.equal([]));`,
    1,
    '0 passed, 1 failed',
  ],
  [
    'large',
    'fails for large values that differ in their last line',
    `import { expect } from 'chai'; const lines = Array.from({ length: 400 }, (_, n) => n + " of many lines of a manifest"); it('a', () => expect([...lines, 'made']).to.deep.equal([...lines, 'wanted']));`,
    1,
    '0 passed, 1 failed',
  ],
  ['runners', 'counts a group of which one file runs', `it('a', () => {});`, 0, '1 passed, 0 failed'],
  ['store', 'skips what cannot run here', `it('a', () => {});`, 1, '0 passed, 0 failed, 1 skipped'],
] as const;

interface Outcome {
  readonly code: number;
  readonly lines: readonly string[];
}

describe('test/run.ts', () => {
  let folder: string;
  let outcomes: ReadonlyMap<string, Outcome>;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    const support = ['compile-cache', 'hooks', 'seed', 'tools', 'until'].map((name) => `test/support/${name}.ts`);
    for (const path of ['.mocharc.json', 'test/run.ts', 'test/lanes.ts', ...support]) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      copyFileSync(join(root, path), join(folder, path));
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    for (const [group, , source] of cases) {
      mkdirSync(join(folder, 'test', group));
      writeFileSync(join(folder, 'test', group, 'a.test.ts'), source);
    }
    mkdirSync(join(folder, 'bin'));
    for (const name of ['kube-apiserver', 'redis-server'])
      writeFileSync(join(folder, 'bin', name), '', { mode: 0o755 });
    writeFileSync(join(folder, 'test', 'cluster', 'b.test.ts'), `it('a', () => {});`);
    const ended = await Promise.all(cases.map(async ([group]) => [group, await run(group)] as const));
    outcomes = new Map(ended);
  });

  after(() => {
    const [, child] = /process (\d+) \(sleep/.exec(outcomes.get('child')?.lines.join() ?? '') ?? [];
    if (child) process.kill(Number(child));
    rmSync(folder, { recursive: true });
  });

  function run(groups: string): Promise<Outcome> {
    // Without the folders of the system there is no redis-server, nor anything else.
    const env = { PATH: groups === 'store' ? '' : `${join(folder, 'bin')}:${process.env.PATH}`, TMPDIR: folder };
    return new Promise((resolve) => {
      execFile(process.execPath, [join(folder, 'test/run.ts'), '--groups', groups], { env }, (error, stdout) => {
        resolve({ code: Number(error?.code ?? 0), lines: stdout.trimEnd().split('\n') });
      });
    });
  }

  for (const [group, title, , code, last] of cases) {
    it(title, () => {
      const { code: seen, lines } = outcomes.get(group)!;
      expect({ code: seen, last: lines.at(-1) }).to.deep.equal({ code, last });
    });
  }

  for (const [group, line] of [
    ['bad', '!! test/bad/a.test.ts: b: b'],
    ['hook', '!! test/hook/a.test.ts: a "before all" hook for "b": no room'],
    ['hook', '!! test/hook/**/*.test.ts: 2 tests did not run, because a hook failed'],
    ['crash', '!! test/crash/**/*.test.ts: The process ended with 0 in test/crash/a.test.ts: a'],
    ['killed', '!! test/killed/a.test.ts: a: a'],
    ['killed', '!! test/killed/**/*.test.ts: The process ended with SIGKILL in test/killed/a.test.ts: b'],
    ['unread', '!! test/unread/**/*.test.ts: The process ended with 1 before its first test'],
    ['open', '!! test/open/**/*.test.ts: The tests leave something open, so their process does not end'],
    [
      'list',
      "!! test/list/a.test.ts: a: expected [ 'src/model/first.ts: 301 lines', 'src/model/other.ts: 302 lines' ] to deeply equal []",
    ],
    ['pending', '!! test/pending/a.test.ts: b: Pending test forbidden'],
  ] as const) {
    it(`tells at the end what failed: ${line}`, () => {
      expect(outcomes.get(group)!.lines.slice(-4)).to.include(line);
    });
  }

  it('shows where large values differ', () => {
    const shown = outcomes.get('large')!.lines.map((line) => line.trim());
    expect(shown).to.include('-  "made"').and.include('+  "wanted"');
  });

  it('tells at the end the first line of the output of a command that failed', async () => {
    const { lines } = await run('types,good');
    expect(lines.slice(-4).join('\n')).to.match(/^!! tsc -p \..*: error TS\d+: /m);
  });

  it('adds groups up, and shows the output of each when it is over', async () => {
    const { lines } = await run('bad,good');
    const told = lines
      .filter((line) => /^==|passing/.test(line))
      .map((line) => line.replace(/ (?:in|\().*$/, '').trim());
    expect(told.slice(0, -1).sort()).to.deep.equal([
      ...['1 passing', '1 passing', '== bad: 1 passed, 1 failed', '== good: 1 passed, 0 failed'],
    ]);
    expect(told.at(-1)).to.equal('== bad, good');
    expect(lines.at(-1)).to.equal('2 passed, 1 failed');
  });

  it('runs groups that wait beside those that compute, and tells of each group and of each file', async () => {
    // Each of them waits for the other two.
    const all = ['cluster', 'runners', 'good'];
    const meet = (own: string) => `import { existsSync, writeFileSync } from 'node:fs';
      import { until } from '../support/until.ts';
      it('meets', async function () {
        writeFileSync('${folder}/${own}-is-here', '');
        await until(() => ${JSON.stringify(all)}.every((name) => existsSync('${folder}/' + name + '-is-here')), 15, 'all are here');
      });`;
    for (const name of all) writeFileSync(join(folder, 'test', name, 'a.test.ts'), meet(name));
    const { lines } = await run('runners,good,cluster');
    const told = lines.filter((line) => /^(?:==|--)/.test(line)).map((line) => line.replace(/ in [\d.]+ s$/, ''));
    expect(told).to.have.members([
      '-- test/cluster/a.test.ts: 1 passed, 0 failed',
      '-- test/cluster/b.test.ts: 1 passed, 0 failed',
      '== cluster: 2 passed, 0 failed',
      '== good: 1 passed, 0 failed',
      '== runners: 1 passed, 0 failed',
      '== runners, good, cluster',
    ]);
    expect(lines.at(-1)).to.equal('4 passed, 0 failed');
  });

  for (const [build, tally] of [
    ['true', { passed: 1, failed: 0, skipped: 0, failures: [] }],
    ['false', { passed: 0, failed: 0, skipped: 1, failures: [] }],
    ['./is-not-there', { passed: 0, failed: 0, skipped: 1, failures: [] }],
  ] as const) {
    it(`builds what tests need before it runs them: ${build}`, () => {
      const batch = { group: 'good', what: 'test/runs.test.ts', build };
      writeFileSync(join(folder, 'test', 'runs.test.ts'), `it('a', () => {});`);
      writeFileSync(
        join(folder, 'build.ts'),
        `import { runInLanes } from './test/lanes.ts';
        await runInLanes([], ${JSON.stringify([batch])}, (_, tally) => console.log(JSON.stringify(tally)));`,
      );
      const said = execFileSync(process.execPath, ['build.ts'], { cwd: folder, encoding: 'utf8' }).trim().split('\n');
      expect(JSON.parse(said.at(-1) ?? '')).to.deep.equal(tally);
    });
  }

  it('builds once and lets others run meanwhile, and the time of the build is not that of a file', () => {
    const here = join(folder, 'other-has-run');
    writeFileSync(join(folder, 'test', 'built.test.ts'), `it('a', () => {});`);
    writeFileSync(
      join(folder, 'test', 'other.test.ts'),
      `import { writeFileSync } from 'node:fs'; it('a', () => writeFileSync('${here}', ''));`,
    );
    const ends = join(folder, 'ends-of-builds');
    const script = `for i in $(seq 900); do [ -e ${here} ] && echo built >>${ends} && exit 0; sleep 0.1; done; exit 1`;
    writeFileSync(join(folder, 'bin', 'build'), `#!/bin/sh\n${script}`, { mode: 0o755 });
    const built = { group: 'e2e', what: 'test/built.test.ts', build: join(folder, 'bin', 'build') };
    const other = { group: 'cluster', what: 'test/other.test.ts' };
    writeFileSync(
      join(folder, 'order.ts'),
      `import { runInLanes } from './test/lanes.ts';
      await runInLanes([], ${JSON.stringify([built, built, built, other])}, (batch, tally, milliseconds) => {
        console.log('over: ' + batch.group + ' ' + tally.passed);
        if (batch.group === 'e2e') console.log('began: ' + (Date.now() - milliseconds));
      });`,
    );
    const lines = execFileSync(process.execPath, ['order.ts'], { cwd: folder, encoding: 'utf8' }).split('\n');
    expect(lines.filter((line) => line.startsWith('over'))).to.deep.equal([
      ...['over: cluster 1', 'over: e2e 1', 'over: e2e 1', 'over: e2e 1'],
    ]);
    expect(lines.filter((line) => line.startsWith(`-- ${built.build}: built in `))).to.have.length(1);
    expect(readFileSync(ends, 'utf8'), 'the build ran once').to.equal('built\n');
    const began = lines.filter((line) => line.startsWith('began')).map((line) => Number(line.split(': ')[1]));
    // Clocks of files and of processes are rounded to milliseconds.
    expect(Math.min(...began), 'the time of a file begins after its build').to.be.above(statSync(ends).mtimeMs - 2);
  });

  it('refuses a group that does not exist', async () => {
    expect((await run('good,nonsense')).code).to.equal(2);
  });

  it('answers an option that it does not know in one line', () => {
    const args = [join(folder, 'test/run.ts'), '--help'];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status).to.equal(2);
    expect(stderr).to.match(/^Unknown option '--help'; --groups NAME,… runs groups of .*\n$/);
  });

  it('names what a test left behind', () => {
    expect(outcomes.get('child')!.lines.join()).to.match(/The tests left behind: process \d+ \(sleep 900\)/);
    expect(outcomes.get('file')!.lines.join()).to.match(/The tests left behind: file trawl-test-/);
  });
});
