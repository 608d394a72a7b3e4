import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadYaml } from '@kubernetes/client-node/dist/yaml.js';
import { expect } from 'chai';
import type { Json } from '../support/json.ts';
import { tool } from '../support/tools.ts';
import { read, root } from '../support/tree.ts';
import { files } from '../support/tree-files.ts';

const paths = files.filter((path) => path.startsWith('.github/workflows/'));
const workflows = paths.map((path) => ({ path, text: read(path), content: loadYaml(read(path)) as Json }));
/** The only scopes of the token beyond reading, by job. */
const writes: Record<string, readonly string[]> = {
  'release.yml images': ['packages'],
  'release.yml publish': ['contents', 'id-token', 'packages'],
};

describe('the workflows', () => {
  it('are accepted by actionlint, which refuses a mistake', () => {
    const { status, stdout, stderr } = spawnSync(join(root, '.ci/lint-workflows'), { encoding: 'utf8' });
    expect({ status, said: stdout + stderr }).to.deep.equal({ status: 0, said: '' });
    const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    try {
      const wrong = join(folder, 'wrong.yml');
      writeFileSync(wrong, read('.github/workflows/release.yml').replace('needs: images', 'needs: pictures'));
      const judged = spawnSync(tool('actionlint'), ['-shellcheck=', '-pyflakes=', wrong], { encoding: 'utf8' });
      expect(judged.status).to.equal(1);
      expect(judged.stdout).to.include('"pictures" which does not exist');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('use actions of others by the digest of a commit, with its version beside it', () => {
    const used = workflows.flatMap(({ text }) => [...text.matchAll(/uses: (.*)$/gm)].map(([, action]) => action!));
    const foreign = used.filter((action) => !action.startsWith('./'));
    expect(foreign.length).to.be.greaterThan(10);
    expect(foreign.filter((action) => !/^[\w.-]+\/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).to.deep.equal(
      [],
    );
    expect(new Set(foreign).size).to.equal(new Set(foreign.map((action) => action.split('@')[0])).size);
  });

  it('may write only where a job publishes', () => {
    for (const { path, content } of workflows) {
      expect(content.permissions, path).to.deep.equal({ contents: 'read' });
      for (const [job, { permissions = {} }] of Object.entries<Json>(content.jobs)) {
        const written = Object.keys(permissions).filter((scope) => permissions[scope] !== 'read');
        const name = `${path.split('/').at(-1)} ${job}`;
        expect(written.sort(), name).to.deep.equal(writes[name] ?? []);
      }
    }
  });

  it('give no event and no name of a branch to a shell', () => {
    const given = workflows.flatMap(({ text }) => [...text.matchAll(/\$\{\{ *github\.(?:event|head_ref)\b.*/g)]);
    expect(given.map(([found]) => found)).to.deep.equal([]);
  });

  it('test with the Go that the tools need', () => {
    const versions = workflows.flatMap(({ text }) => [...text.matchAll(/go-version: ([\d.]+)/g)].map(([, v]) => v!));
    expect(new Set(versions).size).to.equal(1);
    const [, least] = /^go_wanted=(.*)$/m.exec(read('.ci/tools/install')) ?? [];
    expect(versions[0]!.startsWith(`${least}.`)).to.equal(true);
  });

  it('build every image that the chart names', () => {
    const { images } = loadYaml(read('charts/trawl/values.yaml')) as Json;
    const named = Object.keys(images).filter((name) => images[name]?.repository);
    const loops = [...read('.github/workflows/release.yml').matchAll(/for target in (.*); do/g)];
    expect(loops).to.have.length(2);
    for (const [, built] of loops) expect(built!.split(' ').sort()).to.deep.equal(named.sort());
  });
});
