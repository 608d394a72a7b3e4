import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Component {
  readonly type: 'application' | 'library';
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses?: readonly { readonly expression: string }[];
}

// Prints what an image is made of, as CycloneDX: Node, the packages of npm that the lock file of node_modules names, and the
// Debian and Python packages of each root. It tells no time, so that the same image always has the same words.
const [image = '', version = '', lock = '', ...roots] = process.argv.slice(2);
const node = process.versions.node;
const found: Component[] = [
  { type: 'application', name: 'node', version: node, purl: `pkg:generic/node@${node}` },
  ...npmPackages(),
  ...roots.flatMap(debianPackages),
  ...roots.flatMap(pythonPackages),
];
// Two roots may have files of one package.
const components = [...new Map(found.map((each) => [each.purl, each])).values()];
const component = { type: 'container', name: image, version };
const bom = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, metadata: { component }, components };
console.log(JSON.stringify(bom, null, 1));

function npmPackages(): Component[] {
  const { packages } = JSON.parse(readFileSync(lock, 'utf8')) as {
    packages: Record<string, { version: string; license?: string }>;
  };
  // The package that brings Node leaves nothing but its program.
  const kept = Object.entries(packages).filter(([path]) => !path.startsWith('node_modules/node-linux-'));
  return kept.map(([path, { version, license }]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return { type: 'library', name, version, purl, ...(license && { licenses: [{ expression: license }] }) };
  });
}

function debianPackages(root: string): Component[] {
  return read(root, 'var/lib/dpkg/status.d/!(*.md5sums)').map((text) => {
    const [name, version, arch] = [field(text, 'Package'), field(text, 'Version'), field(text, 'Architecture')];
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}`;
    return { type: 'library', name, version, purl };
  });
}

function pythonPackages(root: string): Component[] {
  return read(root, 'lib/python3*/site-packages/*.dist-info/METADATA').map((text) => {
    const [name, version] = [field(text, 'Name'), field(text, 'Version')];
    return { type: 'library', name, version, purl: `pkg:pypi/${name.toLowerCase()}@${version}` };
  });
}

function read(root: string, pattern: string): string[] {
  return globSync(join(root, pattern))
    .sort()
    .map((path) => readFileSync(path, 'utf8'));
}

function field(text: string, name: string): string {
  const found = new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`There is no ${name} in:\n${text.slice(0, 500)}`);
  return found;
}
