import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { OpenImage } from '../support/container.ts';
import { buildMilliseconds, type Images, openImages } from '../support/images.ts';
import { read, root as tree } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

interface Bom {
  readonly metadata: { readonly component: { readonly name: string; readonly version: string } };
  readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string }[];
}

const programs = {
  server: ['usr/local/bin/node'],
  worker: [
    ...'chmod dash ffmpeg ffprobe prlimit python3.13 rm rmdir seq sleep tini'
      .split(' ')
      .map((name) => `usr/bin/${name}`),
    'usr/local/bin/node',
  ],
};
/** Files of no Debian package. */
const ours = [
  /^etc\/(?:group|nsswitch\.conf|passwd|ssl\/certs\/ca-certificates\.crt|os-release)$/,
  /^opt\/trawl\//,
  /^usr\/lib\/python3\.13\/(?:.*\/)?__pycache__\/[^/]+\.pyc$/,
  /^usr\/local\/bin\/node$|^usr\/share\/doc\/node\/copyright$/,
  /^var\/lib\/dpkg\/status\.d\//,
];
const version = (JSON.parse(read('package.json')) as { version: string }).version;

describe('The content of the images', () => {
  let images: Images;
  before(function () {
    this.timeout(buildMilliseconds);
    images = openImages();
  });
  after(() => images?.close());

  for (const name of ['server', 'worker'] as const) {
    describe(`trawl-${name}`, () => {
      const open = (): OpenImage => images[name];
      const inside = (path: string) => join(open().root, path);
      const listed = () => listFiles(open().root);
      const bom = () => JSON.parse(readFileSync(inside('opt/trawl/sbom.cdx.json'), 'utf8')) as Bom;

      it('holds no program but those that trawl runs', () => {
        const elf = listed().filter((path) => isProgram(inside(path)) && !/\.so(?:\.|$)|\.node$/.test(path));
        expect(elf.sort()).to.deep.equal(programs[name]);
        const folders = ['bin', 'usr/bin', 'usr/sbin', 'usr/local/bin', 'opt/trawl/.cache/python/bin'];
        const named = folders.flatMap((folder) => globSync(`${folder}/*`, { cwd: open().root }));
        const links = name === 'worker' ? ['python', 'python3', 'python3.13', 'sh', 'yt-dlp'] : [];
        const known = new Set([...programs[name].map((path) => path.split('/').at(-1)), ...links]);
        expect(named.filter((path) => !known.has(path.split('/').at(-1)))).to.deep.equal([]);
      });

      it('has no file that its user can write and none with setuid or setgid', () => {
        const all = globSync('**', { cwd: open().root, withFileTypes: true }).map((entry) =>
          join(entry.parentPath, entry.name),
        );
        const wrong = all.filter((path) => {
          const { mode, uid } = lstatSync(path);
          return !lstatSync(path).isSymbolicLink() && (uid !== 0 || (mode & 0o6022) !== 0);
        });
        expect(wrong.map((path) => path.slice(open().root.length)).sort()).to.deep.equal(['/scratch', '/tmp']);
        expect(open().settings.User).to.equal('65532:65532');
      });

      it('has every file of Debian unchanged, and lists every package', () => {
        const sums = new Map(listSums(open().root));
        const changed = listed()
          .filter((path) => lstatSync(inside(path)).isFile() && !ours.some((pattern) => pattern.test(path)))
          .filter((path) => sums.get(path) !== md5(inside(path)));
        expect(changed).to.deep.equal([]);
        const described = globSync('*', { cwd: inside('var/lib/dpkg/status.d') }).filter(
          (file) => !file.endsWith('.md5sums'),
        );
        const debian = bom().components.filter(({ purl }) => purl.startsWith('pkg:deb/'));
        expect(debian.map((component) => component.name).sort()).to.deep.equal(described.sort());
      });

      it('holds the packages of the lock file that are not for development, and lists them with their versions', () => {
        const { packages } = JSON.parse(read('package-lock.json')) as {
          packages: Record<string, { version: string; dev?: true; devOptional?: true }>;
        };
        const wanted = Object.entries(packages)
          .filter(([path, { dev }]) => path && !dev && !path.startsWith('node_modules/node-linux-'))
          .map(([path, each]) => `${path} ${each.version}`);
        const manifests = globSync('node_modules/{*,@*/*}{,/node_modules/{*,@*/*}}/package.json', {
          cwd: inside('opt/trawl'),
        });
        const held = manifests.map(
          (path) => `${path.slice(0, -'/package.json'.length)} ${versionOf(inside(`opt/trawl/${path}`))}`,
        );
        expect(held.sort()).to.deep.equal(wanted.sort());
        const npm = bom().components.filter(({ purl }) => purl.startsWith('pkg:npm/'));
        expect(npm.map((each) => `${each.name} ${each.version}`).sort()).to.deep.equal(
          wanted.map((line) => line.slice(line.lastIndexOf('node_modules/') + 'node_modules/'.length)).sort(),
        );
      });

      it('holds the sources of the tree and no other file of it', () => {
        const kept = listed().filter((path) =>
          /^opt\/trawl\/(?!node_modules\/|\.cache\/|.*\/__pycache__\/)/.test(path),
        );
        const sources = files.filter((path) => path.startsWith('src/') && !path.endsWith('.md'));
        const wanted = ['LICENSE', 'package.json', 'sbom.cdx.json', ...sources].map((path) => `opt/trawl/${path}`);
        expect(kept.sort()).to.deep.equal(wanted.sort());
        const changed = sources.filter((path) => readFileSync(inside(`opt/trawl/${path}`), 'utf8') !== read(path));
        expect(changed).to.deep.equal([]);
      });

      it('has labels that describe it', () => {
        const { Labels, WorkingDir, Cmd } = open().settings;
        const told = Object.entries(Labels).map(([key, value]) => [
          key.replace('org.opencontainers.image.', ''),
          value,
        ]);
        const { title, licenses, version: said, revision, created, ...rest } = Object.fromEntries(told);
        expect({ title, licenses, said, WorkingDir, Cmd }).to.deep.equal({
          ...{ title: `trawl-${name}`, licenses: 'Apache-2.0', said: version },
          ...{ WorkingDir: '/scratch', Cmd: ['--help'] },
        });
        expect(revision.replace('-dirty', '')).to.equal(git('rev-parse', 'HEAD'));
        expect(new Date(created)).to.deep.equal(new Date(git('log', '-1', '--format=%cI')));
        expect(rest.description).to.be.a('string');
        expect(bom().metadata.component).to.deep.include({ name: `trawl-${name}`, version });
        expect(readFileSync(join(images.folder, `${name}.cdx.json`), 'utf8')).to.equal(
          readFileSync(inside('opt/trawl/sbom.cdx.json'), 'utf8'),
        );
      });

      it('names nothing of the machine that built it', () => {
        expect(JSON.stringify(open().settings)).to.not.match(/run\/secrets/);
        const secret = [tree, join(homedir(), '.cache', 'trawl'), '/run/secrets'];
        const written = listed().filter((path) => /^etc\/|^opt\/trawl\/(?!node_modules\/|src\/)/.test(path));
        const telling = written.filter((path) => {
          const content = lstatSync(inside(path)).isFile() ? readFileSync(inside(path), 'latin1') : '';
          return secret.some((word) => content.includes(word));
        });
        expect(telling).to.deep.equal([]);
        expect(
          listed().filter((path) => /^etc\/apt|^root|^run|\.npmrc$|pip\.conf$|direct_url|\.git\//.test(path)),
        ).to.deep.equal([]);
      });

      it('has no dangling link', () => {
        const links = listed().filter((path) => lstatSync(inside(path)).isSymbolicLink());
        const lost = links.filter((path) => !leadsSomewhere(open().root, path));
        expect(lost).to.deep.equal([]);
      });
    });
  }
});

function listFiles(root: string): string[] {
  const entries = globSync('**', { cwd: root, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return entries.map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

function isProgram(path: string): boolean {
  return lstatSync(path).isFile() && readFileSync(path).subarray(0, 4).toString('latin1') === '\x7fELF';
}

function listSums(root: string): [string, string][] {
  return globSync(join(root, 'var/lib/dpkg/status.d/*.md5sums')).flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line): [string, string] => [line.slice(34), line.slice(0, 32)]),
  );
}

function git(...words: string[]): string {
  return execFileSync('git', ['-c', 'safe.directory=*', ...words], { cwd: tree, encoding: 'utf8' }).trim();
}

function md5(path: string): string {
  return createHash('md5').update(readFileSync(path)).digest('hex');
}

function versionOf(manifest: string): string {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}

/** Follows a link as if `root` were the root. */
function leadsSomewhere(root: string, path: string): boolean {
  const target = readlinkSync(join(root, path));
  const next = join(root, target.startsWith('/') ? target : join(path, '..', target));
  const entry = lstatSync(next, { throwIfNoEntry: false });
  return entry !== undefined && (!entry.isSymbolicLink() || leadsSomewhere(root, next.slice(root.length)));
}
