import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../support/tree.ts';

const ofSystem = ['sh', 'cat', 'chmod', 'cut', 'dirname', 'env', 'find', 'mkdir', 'sha256sum', 'tee', 'uname'];
const there = ['redis-server', 'ffmpeg', 'bwrap', 'setpriv', 'wrk', 'faketime', 'pdftotext', 'python3'];

const npmOptions = '--ignore-scripts --no-engine-strict --no-audit --no-fund --loglevel=error';

describe('.ci/setup', () => {
  let folder: string;
  let programs: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    programs = join(folder, 'programs');
    mkdirSync(programs);
    mkdirSync(join(folder, '.ci'));
    for (const name of ['setup', 'packages']) copyFileSync(join(root, '.ci', name), join(folder, '.ci', name));
    writeFileSync(join(folder, 'package-lock.json'), '{}');
    for (const name of ofSystem) symlinkSync(find(name), join(programs, name));
    for (const name of there) add(name, '');
    writeFileSync(join(folder, 'trawl'), `#!/bin/sh\necho "trawl $*" >>'${folder}/calls'\n`, { mode: 0o755 });
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

  function setUp(...words: string[]) {
    writeFileSync(join(folder, 'calls'), '');
    const { status, stdout, stderr } = spawnSync(join(folder, '.ci', 'setup'), words, {
      env: { PATH: programs, HOME: join(folder, 'home') },
      encoding: 'utf8',
    });
    const calls = readFileSync(join(folder, 'calls'), 'utf8').split('\n');
    const piped = calls.filter((call) => call.startsWith('pip '));
    const compiled = calls.filter((call) => call.startsWith('trawl '));
    return {
      status,
      stdout,
      stderr,
      piped,
      compiled,
      installing: calls.filter((call) => /^(npm|sudo .*apt-get)/.test(call)),
    };
  }

  it('installs the npm packages once, and again when the lock changes', () => {
    const npm = [`npm ci ${npmOptions}`];
    const first = setUp();
    expect([first.status, first.installing]).to.deep.equal([0, npm]);
    expect(first.stdout).to.equal('setup: installing the npm packages of package-lock.json, among them Node 24\n');
    const second = setUp();
    expect([second.status, second.installing, second.stdout]).to.deep.equal([0, [], '']);
    writeFileSync(join(folder, 'package-lock.json'), '{ }');
    expect(setUp().installing).to.deep.equal(npm);
  });

  it('has each role compile its code when the packages are new', () => {
    const roles = ['up', 'egress', 'inspector', 'worker'];
    expect(setUp().compiled).to.deep.equal(roles.map((role) => `trawl ${role} --help`));
    expect(setUp().compiled).to.deep.equal([]);
  });

  it('tries the npm packages again when they could not be installed', () => {
    add('npm', 'mkdir -p node_modules; exit 1');
    expect(setUp().status).to.equal(1);
    expect(setUp().installing).to.have.length(1);
  });

  it('installs the Python packages of a list once, and again when the list changes or their Python has gone', () => {
    // Such as python3 -m venv --clear DIR makes.
    add(
      'python3',
      `case "$*" in *venv*) mkdir -p "$4/bin"; for name in python pip; do
      printf '#!/bin/sh\\necho "'$name' $*" >>"${folder}/calls"\\n' >"$4/bin/$name"; chmod 755 "$4/bin/$name"; done ;; esac`,
    );
    const list = join(folder, 'test', 'api', 'requirements.txt');
    mkdirSync(join(list, '..'), { recursive: true });
    writeFileSync(list, 'one==1\n');
    const pip = [
      'pip install -q --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r test/api/requirements.txt',
    ];
    const first = setUp();
    expect([first.status, first.piped], first.stderr).to.deep.equal([0, pip]);
    expect(first.stdout).to.contain('setup: installing the Python packages of test/api/requirements.txt\n');
    const second = setUp();
    expect([second.status, second.piped, second.stdout]).to.deep.equal([0, [], '']);
    writeFileSync(list, 'one==2\n');
    expect(setUp().piped).to.deep.equal(pip);
    const made = join(folder, 'home', '.cache', 'trawl', 'venv');
    expect(readdirSync(made)).to.have.length(2);
    for (const name of readdirSync(made)) rmSync(join(made, name, 'bin', 'python'));
    expect(setUp().piped).to.deep.equal(pip);
  });

  /** Puts files into src/media, and a Python of its own that does something; returns what each setup has it do. */
  function withPython(names: readonly string[], does: string): () => string[] {
    const program = `echo "python $*" >>"${folder}/calls"; ${does}`;
    add(
      'python3',
      `mkdir -p "$4/bin"; printf '#!/bin/sh\\n' >"$4/bin/pip"; printf '%s\\n' '#!/bin/sh' '${program}' >"$4/bin/python"; chmod 755 "$4"/bin/*`,
    );
    const media = join(folder, 'src', 'media');
    mkdirSync(media, { recursive: true });
    for (const name of ['requirements.txt', ...names]) writeFileSync(join(media, name), 'one==1\n');
    for (const name of names) utimesSync(join(media, name), 1_000, 1_000);
    return () => {
      const { status, stderr } = setUp('up');
      expect([status, stderr]).to.deep.equal([0, '']);
      return readFileSync(join(folder, 'calls'), 'utf8').match(/^python .*src\/media.*$/gm) ?? [];
    };
  }

  /** Has a file of src/media be changed after a setup. */
  function change(name: string): void {
    const later = Date.now() / 1000 + 60;
    utimesSync(join(folder, 'src', 'media', name), later, later);
  }

  it('lists what patterns of sites need once, and again when the program that lists it changes', () => {
    const listings = withPython(['sites.py'], 'case "$*" in *sites.py) echo 1 >.cache/python/site-needs.json ;; esac');
    expect([listings(), listings()]).to.deep.equal([['python -I -B src/media/sites.py'], []]);
    change('sites.py');
    expect(listings()).to.have.length(1);
  });

  it('compiles the Python of jobs once, and again when a file of it changes', () => {
    const compilings = withPython(
      ['driver.py', 'live.py'],
      'case "$*" in *compileall*) mkdir -p src/media/__pycache__; echo 1 >src/media/__pycache__/$$ ;; esac',
    );
    const compile = 'python -m compileall -q --invalidation-mode checked-hash src/media';
    expect([compilings(), compilings()]).to.deep.equal([[compile], []]);
    change('live.py');
    expect(compilings()).to.deep.equal([compile]);
  });

  it('leaves out for `make up` what only tests need', () => {
    for (const name of ['wrk', 'faketime', 'pdftotext']) rmSync(join(programs, name));
    for (const [path, list] of [
      ['test/api', 'one==1\n'],
      ['src/media', 'two==1\n'],
    ] as const) {
      mkdirSync(join(folder, path), { recursive: true });
      writeFileSync(join(folder, path, 'requirements.txt'), list);
    }
    add('python3', 'mkdir -p "$4/bin"; printf "#!/bin/sh\\n" >"$4/bin/pip"; chmod 755 "$4/bin/pip"');
    const { status, stdout, stderr } = setUp('up');
    expect([status, stderr]).to.deep.equal([0, '']);
    expect(stdout.split('\n').filter((line) => line.includes('Python'))).to.deep.equal([
      'setup: installing the Python packages of src/media/requirements.txt',
    ]);
  });

  it('leaves out for `make up` the npm packages of tests, and adds them later without removing the others', () => {
    const up = setUp('up');
    expect([up.status, up.installing, up.compiled.length]).to.deep.equal([0, [`npm ci --omit=dev ${npmOptions}`], 4]);
    expect(setUp('up').installing).to.deep.equal([]);
    const all = setUp();
    expect([all.status, all.installing, all.compiled]).to.deep.equal([0, [`npm install --no-save ${npmOptions}`], []]);
    for (const words of [[], ['up']]) expect(setUp(...words).installing).to.deep.equal([]);
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
