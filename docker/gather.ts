import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

// Copies into a root of their own: the named files and folders, what links lead to, the libraries that programs load, and of
// each Debian package that one of them comes from its status, its checksums and its copyright. What lies in the root `beside`
// is left out.
const { values, positionals } = parseArgs({ allowPositionals: true, options: { beside: { type: 'string' } } });
const [root = '', ...wanted] = positionals;
const named = wanted.flatMap(filesOf);
const libraries = named.filter(isProgram).flatMap(librariesOf).flatMap(trailOf);
const files = [...new Set([...named, ...libraries])].filter((path) => !values.beside || !isIn(values.beside, path));
const copyrights = packagesOf(files)
  .map((name) => `/usr/share/doc/${name}/copyright`)
  .flatMap(trailOf);
const packages = packagesOf([...files, ...copyrights]);
mkdirSync(root);
ask('cp', ['--archive', '--parents', ...new Set([...files, ...copyrights]), root]);
for (const name of packages) describe(name);
console.log(`${root}: ${files.length} files of ${packages.length} Debian packages`);

/** As scanners of images look for it. */
function describe(name: string): void {
  const folder = join(root, 'var/lib/dpkg/status.d');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), ask('dpkg-query', ['--status', name]));
  writeFileSync(join(folder, `${name}.md5sums`), ask('dpkg-query', ['--control-show', name, 'md5sums']));
}

function filesOf(path: string): string[] {
  if (!lstatSync(path).isDirectory()) return trailOf(path);
  const below = globSync('**', { cwd: path, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  return below.map((entry) => join(entry.parentPath, entry.name)).flatMap(trailOf);
}

/** The file where it really is, with every link on the way to it. */
function trailOf(path: string): string[] {
  const real = join(realpathSync(dirname(path)), basename(path));
  return lstatSync(real).isSymbolicLink() ? [real, ...trailOf(resolve(dirname(real), readlinkSync(real)))] : [real];
}

function isProgram(path: string): boolean {
  return lstatSync(path).isFile() && readFileSync(path).subarray(0, 4).toString('latin1') === '\x7fELF';
}

function librariesOf(program: string): string[] {
  const said = ask('ldd', [program]);
  if (said.includes('not found')) throw new Error(`${program} lacks a library:\n${said}`);
  return [...said.matchAll(/(?:=> |^\t)(\/\S+) \(/gm)].map(([, path]) => path!);
}

/** Files that no package has, such as compiled ones, are ours. */
function packagesOf(paths: readonly string[]): string[] {
  const { stdout } = spawnSync('dpkg-query', ['--search', ...paths], { encoding: 'utf8', maxBuffer: 2 ** 26 });
  return [...new Set([...stdout.matchAll(/^([a-z0-9][a-z0-9.+-]*)(?::\w+)?: \//gm)].map(([, name]) => name!))].sort();
}

function isIn(other: string, path: string): boolean {
  return existsSync(join(other, path));
}

function ask(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`${command} failed: ${stderr}`);
  return stdout;
}
