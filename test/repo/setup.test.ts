import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../support/tree.ts';

const ofSystem = ['sh', 'cat', 'chmod', 'cut', 'dirname', 'env', 'mkdir', 'rm', 'sha256sum', 'tee', 'uname'];
const there = ['redis-server', 'ffmpeg', 'bwrap', 'setpriv', 'python3'];

/** As `python3 -m venv FOLDER`, of which the installer needs pip and python. */
const makeEnvironment = `case "$*" in "-m venv "*)
  mkdir -p "$3/bin" "$3/lib"
  for name in pip python; do
    printf '#!/bin/sh\\necho "%s $*" >>calls\\n' "$name" >"$3/bin/$name"
    chmod 755 "$3/bin/$name"
  done ;;
esac`;
const npm = 'npm ci --ignore-scripts --no-engine-strict';
const pip = 'pip install --quiet --disable-pip-version-check -r src/media/requirements.txt';

describe('.ci/setup', () => {
  let folder: string;
  let programs: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    programs = join(folder, 'programs');
    mkdirSync(programs);
    mkdirSync(join(folder, '.ci'));
    copyFileSync(join(root, '.ci', 'setup'), join(folder, '.ci', 'setup'));
    writeFileSync(join(folder, 'package-lock.json'), '{}');
    for (const name of ofSystem) symlinkSync(find(name), join(programs, name));
    mkdirSync(join(folder, 'src', 'media'), { recursive: true });
    writeFileSync(join(folder, 'src', 'media', 'requirements.txt'), 'yt-dlp');
    for (const name of there) add(name, '');
    add('python3', makeEnvironment);
    add('id', 'echo 1000');
    add('node', 'echo 20');
    add('npm', 'mkdir -p node_modules');
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  function find(name: string): string {
    return spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim();
  }

  /** A program of this machine that writes down how it was called. */
  function add(name: string, script: string): void {
    writeFileSync(join(programs, name), `#!/bin/sh\necho "${name} $*" >>'${folder}/calls'\n${script}\n`);
    chmodSync(join(programs, name), 0o755);
  }

  function setUp() {
    writeFileSync(join(folder, 'calls'), '');
    const { status, stdout, stderr } = spawnSync(join(folder, '.ci', 'setup'), {
      env: { PATH: programs },
      encoding: 'utf8',
    });
    const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n');
    return { status, stdout, stderr, installing: calls.filter((call) => /^(npm|pip|sudo .*apt-get)/.test(call)) };
  }

  it('installs the packages of npm and Python once, and again when their list changes', () => {
    const first = setUp();
    expect([first.status, first.installing]).to.deep.equal([0, [npm, pip]]);
    expect(first.stdout).to.equal(
      'setup: installing the npm packages of package-lock.json, among them Node 24\n' +
        'setup: installing the Python packages of src/media/requirements.txt, among them yt-dlp\n',
    );
    const second = setUp();
    expect([second.status, second.installing, second.stdout]).to.deep.equal([0, [], '']);
    writeFileSync(join(folder, 'package-lock.json'), '{ }');
    expect(setUp().installing).to.deep.equal([npm]);
    writeFileSync(join(folder, 'src', 'media', 'requirements.txt'), 'another');
    expect(setUp().installing).to.deep.equal([pip]);
  });

  it('tries the npm packages again when they could not be installed', () => {
    add('npm', 'mkdir -p node_modules; exit 1');
    expect(setUp().status).to.equal(1);
    expect(setUp().installing).to.have.length(1);
  });

  it('installs with sudo the packages whose program is missing', () => {
    rmSync(join(programs, 'redis-server'));
    rmSync(join(programs, 'setpriv'));
    const copy = (name: string) => `'${find('cp')}' '${join(programs, 'ffmpeg')}' '${join(programs, name)}'`;
    add('sudo', `case "$*" in *install*) ${copy('redis-server')}; ${copy('setpriv')} ;; esac`);
    add('apt-get', '');
    const { status, installing } = setUp();
    expect(status).to.equal(0);
    expect(installing.slice(0, 2)).to.deep.equal([
      'sudo apt-get update -qq',
      'sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends redis-server util-linux',
    ]);
  });

  for (const [title, missing, aptGet, sentence] of [
    [
      'there is no apt-get',
      'redis-server',
      false,
      'there is no apt-get here; install these packages yourself: redis-server',
    ],
    [
      'there is neither root nor sudo',
      'bwrap',
      true,
      'neither root nor sudo; have these packages installed: bubblewrap',
    ],
  ] as const) {
    it(`names the package and stops where ${title}`, () => {
      rmSync(join(programs, missing));
      if (aptGet) add('apt-get', '');
      const { status, stderr, installing } = setUp();
      expect([status, stderr, installing]).to.deep.equal([1, `setup: ${sentence}\n`, []]);
    });
  }

  it('says which Node it needs', () => {
    add('node', 'echo 18');
    const { status, stderr, installing } = setUp();
    expect([status, installing]).to.deep.equal([1, []]);
    expect(stderr).to.equal('setup: Node 20 or newer with npm is needed to install the rest; install it first\n');
  });
});
