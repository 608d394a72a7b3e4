import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { read, root } from '../support/tree.ts';

const ofSystem =
  'awk basename bash cat cut dirname env flock grep head mkdir mv printf rm sha256sum sleep sort touch tr wc'.split(
    ' ',
  );
const wanted =
  'tools: Go 1.26 or newer is needed to build what only tests of a cluster and of S3 need; without it these tests are skipped\n';

describe('.ci/tools/install', () => {
  let folder: string;
  let programs: string;
  let module: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    programs = join(folder, 'programs');
    module = join(folder, '.ci', 'tools', 'one');
    for (const path of [programs, module]) mkdirSync(path, { recursive: true });
    for (const path of ['packages', 'tools/install']) copyFileSync(join(root, '.ci', path), join(folder, '.ci', path));
    for (const name of ofSystem) {
      symlinkSync(spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim(), join(programs, name));
    }
    add(join(programs, 'id'), 'echo 1000');
    addGo('1.26.0');
    writeFileSync(join(module, 'go.mod'), 'module one\n');
    add(join(module, 'build'), 'echo one/package\necho Building the program >&2\ntouch "$1/program"');
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  /** A script that writes down that it was called. */
  function add(path: string, script: string): void {
    writeFileSync(path, `#!/usr/bin/env bash\necho "$(basename "$0") $*" >>'${folder}/calls'\n${script}\n`);
    chmodSync(path, 0o755);
  }

  function addGo(version: string): void {
    add(join(programs, 'go'), `case $1 in env) echo go${version} linux amd64 ;; list) echo one/package ;; esac`);
  }

  const env = () => ({ PATH: programs, HOME: join(folder, 'home') });
  const script = () => join(folder, '.ci', 'tools', 'install');
  const install = (...words: string[]) => spawnSync(script(), words, { env: env(), encoding: 'utf8' });
  const builds = () =>
    readFileSync(join(folder, 'calls'), 'utf8')
      .split('\n')
      .filter((call) => call.includes('build'));
  const where = () => install('--where').stdout.split('\n').filter(Boolean);

  it('builds a module once, and again when one of its files or Go changes', () => {
    expect(where()).to.deep.equal([]);
    const first = install();
    expect(first.status, first.stderr).to.equal(0);
    expect(first.stdout.split('\n').slice(0, 5)).to.deep.equal([
      'tools: downloading the sources of one',
      'tools: building one, 1 packages; this may take some minutes',
      'tools: one: 100 %',
      'Building the program',
      'tools: built one',
    ]);
    const [place = ''] = where();
    expect(existsSync(join(place, 'program'))).to.equal(true);
    install();
    expect(builds()).to.have.length(1);
    writeFileSync(join(module, 'go.mod'), 'module two\n');
    expect(where()).to.deep.equal([]);
    install();
    addGo('1.27.1');
    install();
    expect(builds()).to.have.length(3);
    expect(where()).to.have.length(1).and.not.to.include(place);
  });

  it('builds what only the long form of the tests needs when it is told to', () => {
    const name = /^long_modules=' (\S+) '$/m.exec(read('.ci/tools/install'))?.[1] ?? '';
    const long = join(folder, '.ci', 'tools', name);
    mkdirSync(long);
    writeFileSync(join(long, 'go.mod'), 'module long\n');
    add(join(long, 'build'), 'touch "$1/long-program"');
    expect(install().status).to.equal(0);
    expect(where()).to.have.length(1);
    expect(install('--long').status).to.equal(0);
    expect(where().flatMap((place) => readdirSync(place))).to.have.members(['program', 'long-program']);
    expect(install('--long').stdout).not.to.contain('building');
  });

  it('installs the tools of a module that says nothing else', () => {
    rmSync(join(module, 'build'));
    add(
      join(programs, 'go'),
      `case $1 in env) echo go1.26.0 ;; list) echo a ;; install) touch "$GOBIN/\${!#}" ;; esac`,
    );
    expect(install().status).to.equal(0);
    expect(readdirSync(where()[0] ?? '')).to.deep.equal(['tool']);
  });

  it('installs a list of Python packages once, and offers only the program that it is named for', () => {
    const list = join(folder, '.ci', 'tools', 'judge-requirements.txt');
    writeFileSync(list, 'judge==1\n');
    add(
      join(programs, 'python3'),
      `mkdir -p "\${!#}/bin"; for name in pip python judge; do printf '#!/bin/sh\\n' >"\${!#}/bin/$name"; chmod +x "\${!#}/bin/$name"; done`,
    );
    symlinkSync(spawnSync('which', ['chmod'], { encoding: 'utf8' }).stdout.trim(), join(programs, 'chmod'));
    symlinkSync(spawnSync('which', ['ln'], { encoding: 'utf8' }).stdout.trim(), join(programs, 'ln'));
    const { status, stderr, stdout } = install();
    expect(status, stderr).to.equal(0);
    expect(stdout).to.contain('tools: installing the Python packages of judge-requirements.txt\n');
    const [, place = ''] = where();
    expect(readdirSync(place)).to.deep.equal(['judge']);
    expect(install().stdout).to.not.contain('installing');
    writeFileSync(list, 'judge==2\n');
    expect(where()).to.have.length(1);
  });

  it('keeps nothing of a build that failed', () => {
    add(join(module, 'build'), 'touch "$1/program"; exit 1');
    const { status, stderr } = install();
    expect([status, stderr]).to.deep.equal([1, 'tools: one could not be built\n']);
    expect(where()).to.deep.equal([]);
    add(join(module, 'build'), 'touch "$1/program"');
    install();
    expect(where()).to.have.length(1);
  });

  it('says what is wrong when the sources cannot be downloaded', () => {
    add(join(programs, 'go'), `case $1 in env) echo go1.26.0 ;; list) echo 'go: no such host' >&2; exit 1 ;; esac`);
    const { status, stderr } = install();
    expect(status).to.equal(1);
    expect(stderr.split('\n').sort()).to.deep.equal([
      '',
      'go: no such host',
      'tools: the sources of one could not be downloaded',
    ]);
  });

  it('builds once when it is run twice at once', async () => {
    add(join(module, 'build'), 'sleep 0.3; touch "$1/program"');
    const run = () =>
      new Promise<string>((resolve) => execFile(script(), { env: env() }, (_, stdout) => resolve(stdout)));
    const said = await Promise.all([run(), run()]);
    expect(builds()).to.have.length(1);
    expect(said.join('')).to.contain('tools: waiting for another run of make tools\n');
    expect(
      readdirSync(join(folder, 'home', '.cache', 'trawl', 'tools')).filter((name) => name.startsWith('one')),
    ).to.have.length(1);
  });

  for (const [title, change] of [
    ['there is no Go', () => rmSync(join(programs, 'go'))],
    ['Go is too old', () => addGo('1.25.9')],
  ] as const) {
    it(`says what is needed where ${title}`, () => {
      change();
      const { status, stderr, stdout } = install();
      expect([status, stderr, stdout]).to.deep.equal([1, wanted, '']);
      expect(where()).to.deep.equal([]);
    });
  }

  it('installs no packages of the system without root', () => {
    const { status, stdout } = install();
    expect(status).to.equal(0);
    expect(stdout.split('\n').at(-2)).to.equal(
      'tools: tests on a real node and of the images need root, so they are skipped',
    );
  });
});
