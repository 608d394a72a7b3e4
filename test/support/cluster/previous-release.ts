import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { layouts } from '../../../src/store/schema.ts';
import { helm } from '../chart.ts';
import { root } from '../tree.ts';
import { valuesOf } from './chart-ground.ts';
import { run } from './network.ts';

/** Images and chart of an older commit. */
export interface PreviousRelease {
  readonly revision: string;
  readonly chart: string;
  /** Value `images.registry` of its images, which have the same names and version otherwise. */
  readonly registry: string;
  readonly archives: readonly string[];
}

const registry = 'before.test';
const layoutFile = 'src/store/schema.ts';
const chartFolder = 'charts/trawl';

/** Builds the oldest commit whose record this tree reads and whose chart takes the values of the ground, into a folder. */
export function buildPreviousRelease(folder: string): PreviousRelease {
  const layout = `own: ${layouts.own},`;
  const first = git('log', '--format=%H', `-S${layout}`, '--', layoutFile).trim().split('\n').at(-1);
  const since = git('log', '--reverse', '--format=%H', `${first}..HEAD`, '--', `${chartFolder}/values.yaml`);
  const revisions = [first ?? '', ...since.trim().split('\n')];
  for (const revision of revisions) {
    const tree = join(folder, `tree-${revision.slice(0, 8)}`);
    git('worktree', 'add', '--detach', tree, revision);
    try {
      if (takesValues(join(tree, chartFolder))) return build(folder, tree, revision);
    } finally {
      git('worktree', 'remove', '--force', tree);
    }
  }
  throw new Error(`No commit since ${first} takes the values of the test`);
}

function build(folder: string, tree: string, revision: string): PreviousRelease {
  const script = join(tree, 'docker', 'build');
  // Programs of the build leave caches in the temporary folder.
  const env = { ...process.env, IMAGE_PREFIX: `${registry}/`, TMPDIR: folder };
  execFileSync(script, { env, stdio: 'ignore' });
  const built = execFileSync(script, ['--where'], { env, encoding: 'utf8' }).trim();
  const chart = join(folder, 'chart-before');
  cpSync(join(tree, chartFolder), chart, { recursive: true });
  mkdirSync(join(folder, 'before'));
  const archives = ['server', 'worker'].map((name) => {
    const archive = join(folder, 'before', `before-${name}.tar`);
    symlinkSync(join(built, `${name}.tar`), archive);
    return archive;
  });
  return { revision, chart, registry, archives };
}

function takesValues(chart: string): boolean {
  const file = `${chart}/../../values-of-test.json`;
  const url = 'http://10.0.0.1:80';
  const source = { url, host: '10.0.0.1:80' };
  const s3 = { settings: { s3Endpoint: url, s3Bucket: 'films' } };
  const redis = { peers: [{ cidr: '10.0.0.1/32', port: 6379 }] };
  const values = valuesOf({ address: '10.0.0.1', clusterUrl: 'https://10.0.0.1:6443', redis, s3, source, ca: 'none' });
  writeFileSync(file, JSON.stringify(values));
  return helm('template', 'trawl', chart, '--kube-version', '1.36.0', '--values', file).code === 0;
}

function git(...words: string[]): string {
  return run('git', '-C', root, ...words);
}
