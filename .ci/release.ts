import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const root = join(import.meta.dirname, '..');
const usage = `node .ci/release.ts VERSION [--dry-run]       moves every version, commits and tags
node .ci/release.ts --notes VERSION           prints the section of CHANGELOG.md
node .ci/release.ts --chart FOLDER --registry PREFIX --source URL   copies the chart, with the images of that registry`;
const versionForm = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9a-z.-]+))?$/;

/** Files that hold the version; charts/generate writes manifests/install.yaml anew out of the chart. */
const edits: Readonly<Record<string, (text: string, release: Release) => string>> = {
  'package.json': editPackage,
  'package-lock.json': editLock,
  'clients/typescript/package.json': editPackage,
  'clients/typescript/package-lock.json': editLock,
  'clients/python/pyproject.toml': (text, { version }) =>
    replaceOnce(text, /^version = ".*"$/m, `version = "${version}"`),
  'charts/trawl/Chart.yaml': editChart,
  'CHANGELOG.md': (text, { version, date }) =>
    replaceOnce(text, /^## Pending\n/m, `## Pending\n\n## ${version} · ${date}\n`),
  'docs/openapi.json': editDocument,
  // From now on .ci/api-changes compares with this release.
  'docs/openapi-released.json': (_text, made) => editDocument(read('docs/openapi.json'), made),
};

interface Release {
  readonly version: string;
  readonly date: string;
  readonly notes: string;
}

try {
  main();
} catch (error) {
  console.error(`release: ${(error as Error).message}`);
  process.exitCode = 1;
}

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      notes: { type: 'boolean', default: false },
      chart: { type: 'string' },
      registry: { type: 'string' },
      source: { type: 'string' },
    },
  });
  const [version = ''] = positionals;
  if (values.chart && values.registry && values.source) {
    copyChart(values.chart, values.registry, values.source);
    return;
  }
  if (!versionForm.test(version))
    throw new Error(`VERSION must be like 1.2.3 or 1.2.3-rc.1, and is '${version}'\n${usage}`);
  if (values.notes) console.log(sectionOf(read('CHANGELOG.md'), version));
  else release(version, values['dry-run']);
}

function release(version: string, isDry: boolean): void {
  const current = (JSON.parse(read('package.json')) as { version: string }).version;
  const isTagged = git('tag', '--list', `v${current}`) !== '';
  if (compare(version, current) < (isTagged ? 1 : 0)) throw new Error(`${version} must be newer than ${current}`);
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`the tag v${version} is there already`);
  if (git('status', '--porcelain') !== '') throw new Error('the tree has changes that are not committed');
  const notes = sectionOf(read('CHANGELOG.md'), 'Pending');
  const made = { version, date: new Date().toISOString().slice(0, 10), notes };
  const texts = Object.entries(edits).map(([path, edit]) => [path, edit(read(path), made)] as const);
  if (isDry) {
    for (const path of [...Object.keys(edits), 'manifests/install.yaml']) console.log(`would change ${path}`);
    console.log(`would commit 'release: ${version}' and tag v${version} with:\n\n${notes}`);
    return;
  }
  try {
    for (const [path, text] of texts) writeFileSync(join(root, path), text);
    execFileSync(join(root, 'charts', 'generate'), { stdio: ['ignore', 'ignore', 'inherit'] });
    if (!read('manifests/install.yaml').includes(`helm.sh/chart: trawl-${version}\n`))
      throw new Error("manifests/install.yaml keeps the old version: helm of 'make tools' writes it");
  } catch (error) {
    git('checkout', '--', '.');
    throw error;
  }
  git('commit', '--quiet', '--all', '--message', `release: ${version}`);
  git('tag', '--annotate', '--cleanup', 'verbatim', '--message', `${version}\n\n${notes}`, `v${version}`);
  console.log(`committed and tagged v${version}. This starts its publication:\n  git push origin HEAD v${version}`);
}

function editPackage(text: string, { version }: Release): string {
  return replaceOnce(text, /^ {2}"version": ".*"/m, `  "version": "${version}"`);
}

function editLock(text: string, { version }: Release): string {
  const lock = JSON.parse(text) as { version: string; packages: Record<string, { version: string }> };
  lock.version = version;
  lock.packages['']!.version = version;
  return `${JSON.stringify(lock, null, 2)}\n`;
}

function editDocument(text: string, { version }: Release): string {
  return replaceOnce(text, /^ {4}"version": ".*"/m, `    "version": "${version}"`);
}

function editChart(text: string, { version, notes }: Release): string {
  const changes = firstSentences(notes).map(
    (sentence) => `    - kind: changed\n      description: ${JSON.stringify(sentence)}\n`,
  );
  let edited = replaceOnce(text, /^version: .*$/m, `version: ${version}`);
  edited = replaceOnce(edited, /^appVersion: .*$/m, `appVersion: ${version}`);
  edited = replaceOnce(
    edited,
    /^ {2}artifacthub\.io\/prerelease: .*$/m,
    `  artifacthub.io/prerelease: "${version.includes('-')}"`,
  );
  return replaceOnce(
    edited,
    /^ {2}artifacthub\.io\/changes: \|\n(?: {4}.*\n)*/m,
    `  artifacthub.io/changes: |\n${changes.join('')}`,
  );
}

/** Copies the chart so that it installs the images of a registry, and says where they and their source are. */
function copyChart(folder: string, registry: string, source: string): void {
  cpSync(join(root, 'charts', 'trawl'), folder, { recursive: true });
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const values = join(folder, 'values.yaml');
  writeFileSync(values, replaceOnce(readFileSync(values, 'utf8'), /^ {2}registry: ""$/m, `  registry: ${registry}`));
  const images = ['server', 'worker', 'redis', 's3'].map(
    (name) =>
      `    - name: trawl-${name}\n      image: ${registry}/trawl-${name}:${version}\n      platforms: [linux/amd64, linux/arm64]\n`,
  );
  const page = join(folder, 'README.md');
  const pages = readFileSync(page, 'utf8').replaceAll('](../../', `](${source}/blob/v${version}/`);
  writeFileSync(page, pages);
  const chart = join(folder, 'Chart.yaml');
  const home = `home: ${source}\nsources: [${source}]\nannotations:\n  artifacthub.io/images: |\n${images.join('')}`;
  writeFileSync(chart, replaceOnce(readFileSync(chart, 'utf8'), /^annotations:\n/m, home));
}

/** Returns what stands under a heading of the changelog; refuses a section without an entry. */
function sectionOf(text: string, heading: string): string {
  const sections = text.split(/^## /m).slice(1);
  const found = sections.find((section) => section.split(/ · |\n/)[0] === heading);
  const body = found?.split('\n').slice(1).join('\n').trim();
  if (!body) throw new Error(`CHANGELOG.md says nothing under '## ${heading}'`);
  return body;
}

/** Returns the first sentence of each entry, without marks that only Markdown shows. */
function firstSentences(notes: string): string[] {
  const entries = notes.split(/^- /m).slice(1);
  return entries.map((entry) =>
    entry
      .replaceAll(/\s+/g, ' ')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll('`', '')
      .trim()
      .split(/(?<=[.;:]) /)[0]!
      .replace(/[.;:]$/, ''),
  );
}

/** Compares as semantic versions do; of two pre-releases the texts decide, by number where both are numbers. */
function compare(one: string, other: string): number {
  const [a, b] = [one, other].map((version) => versionForm.exec(version) ?? []);
  for (const n of [1, 2, 3]) if (a?.[n] !== b?.[n]) return Number(a?.[n]) - Number(b?.[n]);
  if (a?.[4] === b?.[4]) return 0;
  if (!a?.[4] || !b?.[4]) return a?.[4] ? -1 : 1;
  return a[4].localeCompare(b[4], 'en', { numeric: true });
}

function replaceOnce(text: string, pattern: RegExp, by: string): string {
  if (!pattern.test(text)) throw new Error(`nothing matches ${pattern}`);
  return text.replace(pattern, () => by);
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function git(...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('git', words, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${words[0]}: ${stderr.trim()}`);
  return stdout.trim();
}
