import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAllYaml, loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import { helm } from '../support/chart.ts';
import type { Json } from '../support/json.ts';
import { root } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

const pending = `- Callers see **more** of the
  [API](docs/api.md); and so on.
- \`trawl get\` says: "done".
`;

describe('make release', () => {
  let folder: string;
  let tree: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    tree = join(folder, 'tree');
    for (const path of files) {
      if (/^(?:src|test|docs)\/(?!openapi)/.test(path)) continue;
      cpSync(join(root, path), join(tree, path));
    }
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
    write('.gitignore', 'node_modules\n');
    write('CHANGELOG.md', `# Changelog\n\n## Pending\n\n${pending}\n## 0.0.9 · 2026-01-02\n\n- Older.\n`);
    git('init', '--quiet', '--initial-branch', 'main');
    commit('tree: begin');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  // Without the programs of 'make tools' that test/run.ts puts there: the tree has to find them by itself.
  const isOwn = (one: string) => !one.startsWith(join(cache(), 'trawl', 'tools'));
  const path = () => process.env.PATH?.split(':').filter(isOwn).join(':');
  const env = () => ({ PATH: path(), HOME: folder, XDG_CACHE_HOME: cache(), GIT_CONFIG_NOSYSTEM: '1' });
  const cache = () => process.env.XDG_CACHE_HOME ?? join(process.env.HOME!, '.cache');
  const run = (command: string, ...words: string[]) =>
    spawnSync(command, words, { cwd: tree, env: env(), encoding: 'utf8' });
  const git = (...words: string[]) => {
    const { status, stdout, stderr } = run('git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...words);
    if (status !== 0) throw new Error(stderr);
    return stdout;
  };
  const commit = (subject: string) => {
    git('add', '--all');
    git('commit', '--quiet', '--message', subject);
  };
  const release = (...words: string[]) => {
    for (const [name, value] of [
      ['user.name', 'a'],
      ['user.email', 'a@example.com'],
    ] as const)
      git('config', name, value);
    return run('node', '.ci/release.ts', ...words);
  };
  const write = (path: string, text: string) => writeFileSync(join(tree, path), text);
  const read = (path: string) => readFileSync(join(tree, path), 'utf8');
  const isClean = () => git('status', '--porcelain') === '';

  it('moves the versions of program, images, chart and manifests together, and the pending changes under a heading', () => {
    const { status, stdout, stderr } = release('1.4.0-rc.1');
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
    expect(stdout).to.include('git push origin HEAD v1.4.0-rc.1');
    const lock = JSON.parse(read('package-lock.json'));
    for (const path of ['docs/openapi.json', 'docs/openapi-released.json'])
      expect(JSON.parse(read(path)).info.version, path).to.equal('1.4.0-rc.1');
    const chart = loadYaml(read('charts/trawl/Chart.yaml')) as Json;
    const made = loadAllYaml(read('manifests/install.yaml')) as Json[];
    const labels = made.flatMap(({ metadata }) => [metadata.labels['app.kubernetes.io/version']]);
    const images = [...read('manifests/install.yaml').matchAll(/image: "?trawl-\w+:([^"\s]+)/g)].map(([, tag]) => tag);
    expect(images.length).to.be.greaterThan(3);
    expect([
      ...new Set([
        JSON.parse(read('package.json')).version,
        lock.version,
        lock.packages[''].version,
        JSON.parse(read('clients/typescript/package.json')).version,
        JSON.parse(read('clients/typescript/package-lock.json')).packages[''].version,
        /^version = "(.*)"$/m.exec(read('clients/python/pyproject.toml'))?.[1],
        chart.version,
        chart.appVersion,
        ...labels,
        ...images,
      ]),
    ]).to.deep.equal(['1.4.0-rc.1']);
    expect(chart.annotations['artifacthub.io/prerelease']).to.equal('true');
    expect(loadYaml(chart.annotations['artifacthub.io/changes'])).to.deep.equal([
      { kind: 'changed', description: 'Callers see **more** of the API' },
      { kind: 'changed', description: 'trawl get says' },
    ]);
    expect(read('CHANGELOG.md')).to.match(/^## Pending\n\n## 1\.4\.0-rc\.1 · \d{4}-\d\d-\d\d\n\n- Callers/m);
    expect(isClean()).to.equal(true);
    expect(git('log', '-1', '--format=%s')).to.equal('release: 1.4.0-rc.1\n');
    expect(git('tag', '--list', '--format=%(contents)', 'v1.4.0-rc.1')).to.include('- Callers see **more**');
    expect(run('node', '.ci/release.ts', '--notes', '1.4.0-rc.1').stdout).to.equal(`${pending}`);
  });

  it('changes nothing in a dry run, and says what it would change', () => {
    const { status, stdout } = release('--dry-run', '2.0.0');
    expect(status).to.equal(0);
    for (const path of ['package.json', 'package-lock.json', 'charts/trawl/Chart.yaml', 'CHANGELOG.md'])
      expect(stdout).to.include(`would change ${path}\n`);
    expect(stdout).to.include("would commit 'release: 2.0.0' and tag v2.0.0").and.to.include('- Callers see');
    expect(isClean()).to.equal(true);
    expect(git('tag')).to.equal('');
  });

  it('refuses with a sentence what is no release, and leaves the tree as it was', () => {
    const refused = (version: string, sentence: RegExp) => {
      const { status, stderr } = release(version);
      expect(status, version).to.equal(1);
      expect(stderr).to.match(sentence);
    };
    refused('1.4', /VERSION must be like 1\.2\.3/);
    refused('0.0.9', /0\.0\.9 must be newer than 0\.1\.0/);
    refused('0.1.0-rc.1', /must be newer than 0\.1\.0/);
    git('tag', 'v0.2.0');
    refused('0.2.0', /the tag v0\.2\.0 is there already/);
    write('package.json', `${read('package.json')}\n`);
    refused('0.3.0', /changes that are not committed/);
    git('checkout', '--', '.');
    rmSync(join(tree, '.ci/tools/chart/go.mod'));
    commit('tools: build no chart');
    refused('0.3.0', /keeps the old version: helm of 'make tools'/);
    write('CHANGELOG.md', '# Changelog\n\n## Pending\n\n## 0.1.0 · 2026-01-02\n\n- Older.\n');
    commit('changelog: begin');
    refused('0.3.0', /says nothing under '## Pending'/);
    expect(isClean()).to.equal(true);
    expect(git('tag')).to.equal('v0.2.0\n');
  });

  it('copies the chart with the images of a registry, where they and their source are named', () => {
    const copy = join(folder, 'chart');
    const source = 'https://git.example.com/acme/trawl';
    const { status, stderr } = release('--chart', copy, '--registry', 'registry.example.com/acme', '--source', source);
    expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
    const chart = loadYaml(readFileSync(join(copy, 'Chart.yaml'), 'utf8')) as Json;
    expect([chart.home, chart.sources]).to.deep.equal([source, [source]]);
    const images = loadYaml(chart.annotations['artifacthub.io/images']) as Json[];
    const { out, code, err } = helm('template', 'trawl', copy, '--values', join(copy, 'values-try.yaml'));
    expect({ code, err }).to.deep.equal({ code: 0, err: '' });
    const rendered = [...new Set([...out.matchAll(/image: "?([^"\s]+)/g)].map(([, image]) => image))];
    expect(rendered.sort()).to.deep.equal(images.map(({ image }) => image).sort());
    expect(helm('lint', '--strict', copy, '--values', join(copy, 'values-try.yaml')).code).to.equal(0);
    expect(helm('package', copy, '--destination', folder).code).to.equal(0);
    expect(existsSync(join(folder, `trawl-${chart.version}.tgz`))).to.equal(true);
    expect(readFileSync(join(copy, 'README.md'), 'utf8')).to.include(
      `](${source}/blob/v${chart.version}/docs/install.md)`,
    );
  });
});
