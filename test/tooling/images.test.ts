import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { read, root } from '../support/tree.ts';

const { version } = JSON.parse(read('package.json'));
const base = 'docker.io/library/debian:trixie-slim';
/** An engine that has built whatever it is asked for, and keeps what it was told in secret. */
const engine = `case $1 in
  build | bud)
    echo '[1/2] STEP 3/4: RUN --mount=type=secret,id=apt apt-get install'
    for word; do
      case $word in
        id=*,src=*) cat "\${word##*src=}" >>"$calls.secrets" ;;
        type=local,dest=*) mkdir -p "\${word##*dest=}"; touch "\${word##*dest=}"/{server,worker}.cdx.json ;;
      esac
    done ;;
  push) file=\${4#oci-archive:}; pack "\${file%%:*}" ;;
  save) pack "\${*: -2:1}" ;;
esac`;
const pack = `pack() { [[ $1 != *.tar ]] || { echo '{"digest":"sha256:abc"}' >"$1.json"; tar -cf "$1" --transform 's/.*/index.json/' "$1.json" 2>/dev/null; rm "$1.json"; }; }`;

describe('docker/build', () => {
  let folder: string;
  let programs: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    programs = join(folder, 'programs');
    mkdirSync(programs);
    for (const path of ['docker', '.ci/packages', 'package.json', 'package-lock.json', '.npmrc', 'LICENSE']) {
      cpSync(join(root, path), join(folder, 'tree', path), { recursive: true });
    }
    mkdirSync(join(folder, 'tree', 'src'));
    for (const name of ['docker', 'podman', 'mmdebstrap']) add(name, 'exit 1');
    add('buildah', engine);
    add('npm', '[ "$3" != registry ] || echo http://npm.example/');
    add(
      'apt-get',
      '[ $1 != indextargets ] || printf "%s\\n" "Debian http://deb.example/debian/" "Debian-Security http://deb.example/security/"',
    );
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  /** A program that writes down that it was called. */
  function add(name: string, script: string): void {
    const text = `#!/bin/bash\ncalls='${folder}/calls'\necho "${name} $*" >>"$calls"\n${pack}\n${script}\n`;
    writeFileSync(join(programs, name), text);
    chmodSync(join(programs, name), 0o755);
  }

  const script = () => join(folder, 'tree', 'docker', 'build');
  const build = (env: Record<string, string> = {}, ...words: string[]) =>
    spawnSync(script(), words, {
      env: { PATH: `${programs}:/usr/bin:/bin`, HOME: join(folder, 'home'), ...env },
      encoding: 'utf8',
    });
  const calls = (start: string) =>
    readFileSync(join(folder, 'calls'), 'utf8')
      .split('\n')
      .filter((call) => call.startsWith(start));
  const where = () => build({}, '--where').stdout.trim();

  it('builds both images with the first engine that works', () => {
    for (const [name, command] of [
      ['buildah', 'bud'],
      ['podman', 'build'],
      ['docker', 'build'],
    ] as const) {
      add(name, engine);
      const { status, stdout, stderr } = build({ FRESH: '1' });
      expect(status, stderr).to.equal(0);
      expect(stdout).to.include(`images: in ${name} and as archives in ${where()}`).and.to.include('sha256:abc');
      expect(stdout).to.include('images: worker: apt-get install…');
      const built = calls(`${name} ${command}`).flatMap((call) => {
        const [, target, tag] = /--target (\w+).*--tag (\S+)/.exec(call) ?? [];
        return target ? [`${target} ${tag}`] : [];
      });
      expect(built).to.deep.equal([
        `server docker.io/library/trawl-server:${version}`,
        `worker docker.io/library/trawl-worker:${version}`,
      ]);
      expect(readdirSync(where()).sort()).to.deep.equal([
        ...['server.cdx.json', 'server.id', 'server.tar', 'worker.cdx.json', 'worker.id', 'worker.tar'],
      ]);
    }
  });

  it('builds nothing the second time, and again when a source changes or the name does', () => {
    const first = build();
    expect(first.status, first.stderr).to.equal(0);
    const count = calls('buildah bud').length;
    build();
    expect(calls('buildah bud')).to.have.length(count);
    expect(calls('buildah pull')).to.deep.equal([]);
    writeFileSync(join(folder, 'tree', 'src', 'main.ts'), '');
    build();
    expect(calls('buildah bud')).to.have.length(2 * count);
    build({ IMAGE_PREFIX: 'registry.example/acme/' });
    expect(calls('buildah bud').at(-2)).to.include(`--tag registry.example/acme/trawl-worker:${version}`);
  });

  it('brings an image back that another tree has built since', () => {
    build();
    add('buildah', `case $1 in inspect) echo another ;; esac\n${engine}`);
    const { status, stderr } = build();
    expect(status, stderr).to.equal(0);
    expect(calls('buildah pull')).to.deep.equal(
      ['server', 'worker'].map((name) => `buildah pull --quiet oci-archive:${where()}/${name}.tar`),
    );
  });

  it('makes what everything starts from of Debian packages, where it cannot be pulled', () => {
    add('buildah', `case "$*" in inspect*debian*|pull*) exit 1 ;; from*) echo made ;; esac\n${engine}`);
    add('mmdebstrap', `touch "\${@: -2:1}"; cat "\${@: -1}" >"$calls.mirror"`);
    const { status, stderr, stdout } = build();
    expect(status, stderr).to.equal(0);
    expect(stdout).to.include('it cannot be pulled: making the same of the packages of Debian trixie');
    expect(calls('buildah commit')).to.deep.equal([`buildah commit --quiet --timestamp 0 made ${base}`]);
    const mirror = readFileSync(join(folder, 'calls.mirror'), 'utf8');
    expect(mirror).to.include('URIs: http://deb.example/debian/\nSuites: trixie trixie-updates\n');
    expect(mirror).to.include('URIs: http://deb.example/security/\nSuites: trixie-security\n');
  });

  it('starts from the image of BASE_IMAGE, and stops where that cannot be pulled', () => {
    const digest = 'registry.example/debian@sha256:abc';
    const { status, stderr } = build({ BASE_IMAGE: digest });
    expect(status, stderr).to.equal(0);
    expect(calls('buildah bud').filter((call) => call.includes('--target'))[0]).to.include(
      `--build-arg BASE_IMAGE=${digest}`,
    );
    add('buildah', `case "$*" in inspect*debian*|pull*) exit 1 ;; esac\n${engine}`);
    expect(build({ BASE_IMAGE: 'registry.example/debian@sha256:def' })).to.include({
      status: 1,
      stderr: 'images: registry.example/debian@sha256:def cannot be pulled\n',
    });
  });

  it('tells a build of the registries of this machine, and leaves nothing of that', () => {
    build({ PIP_INDEX_URL: 'http://pip.example/simple' });
    const told = readFileSync(join(folder, 'calls.secrets'), 'utf8');
    for (const host of ['npm.example', 'pip.example', 'deb.example']) expect(told).to.include(host);
    expect(calls('buildah').join('\n')).to.not.match(/(?:npm|pip|deb)\.example/);
    expect(readdirSync(join(where(), '..')).filter((name) => name.startsWith('work-'))).to.deep.equal([]);
  });

  it('says why nothing was built, and leaves nothing', () => {
    add('buildah', `[ $1 != bud ] || { echo 'no such package'; exit 1; }\n${engine}`);
    const { status, stderr } = build();
    expect([status, stderr]).to.deep.equal([1, 'no such package\nimages: server could not be built with buildah\n']);
    expect(existsSync(where())).to.equal(false);
    expect(readdirSync(join(where(), '..'))).to.deep.equal(['lock']);
  });
});
