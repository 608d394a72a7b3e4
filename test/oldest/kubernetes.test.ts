import { join } from 'node:path';
import { expect } from 'chai';
import { chart, type Rendering, render, runTool, scenarios } from '../support/chart.ts';
import { closeNamespace, defineForeignKinds, dryRun, letIn } from '../support/cluster/chart-objects.ts';
import { type Cluster, makeNamespace, startCluster } from '../support/cluster/cluster.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { aFolder } from '../support/redis.ts';
import { tool } from '../support/tools.ts';
import { read } from '../support/tree.ts';

/** Pods have no user namespaces there. */
const values = { 'workers.hostUsers': true };

describe('the chart on the API server of the oldest supported Kubernetes', () => {
  let cluster: Cluster;
  let version = '';
  const { folder, remove } = aFolder();

  before(async () => {
    cluster = await startCluster({ apiServer: 'oldest-kube-apiserver' });
    for (const name of ['media', 'media-workers', 'films']) await makeNamespace(cluster, name);
    await defineForeignKinds(cluster);
    version = (await cluster.admin.ask('GET', '/version')).gitVersion;
  });
  after(async () => {
    await cluster?.stop();
    remove();
  });

  it('is of the version that chart and guide name', () => {
    const [, least] = /^kubeVersion: ">=(.*)-0"$/m.exec(read('charts/trawl/Chart.yaml')) ?? [];
    expect(version).to.equal(`v${least}`);
    expect(`${/^\| Kubernetes \| (\S+) \|/m.exec(read('docs/install.md'))?.[1]}.0`).to.equal(least);
  });

  const made: readonly Rendering[] = [
    ...scenarios.map((scenario) => ({ scenario })),
    { scenario: 'values-try.yaml', release: 'r'.repeat(53) },
  ];
  for (const rendering of made) {
    it(`would be made with ${rendering.scenario} as ${rendering.release ?? 'trawl'}`, async () => {
      const items = render({ ...rendering, values, more: ['--kube-version', version] });
      expect(await dryRun(cluster, items)).to.have.length(items.length);
    });
  }

  it('is refused there for a field that this version does not know', async () => {
    const items = render({ values, more: ['--kube-version', version] });
    items.find(({ kind }) => kind === 'Deployment')!.spec.template.spec.enableServiceLink = false;
    const said = await dryRun(cluster, items).catch(({ message }: Error) => message);
    expect(said).to.match(/unknown field ".*enableServiceLink"/);
  });

  it('lets in the workers of its controller and no others', async () => {
    const { judge } = await closeNamespace(cluster, { values, more: ['--kube-version', version] });
    expect(await judge()).to.equal(letIn);
    expect(await judge((_, worker) => (worker.image = 'other:1'))).to.include('trawl: only the image');
    expect(await judge((_, worker) => worker.env.push({ name: 'A', value: 'b' }))).to.include('only the env');
    expect(await judge((pod) => (pod.hostPID = true))).to.match(/forbidden/);
  });

  it('is installed and removed by helm', async () => {
    const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
    const env = { PATH: process.env.PATH, KUBECONFIG: cluster.kubeconfig, ...homes };
    const helm = (...words: string[]) => runTool(tool('helm'), [...words, '-n', 'old', '--no-hooks'], { env });
    const least = ['--values', join(chart, 'ci/least-values.yaml'), '--set', 'workers.hostUsers=true'];
    await helm('install', 'old', chart, '--create-namespace', ...least);
    const names = ['get', 'deployments', '-n', 'old', '-o', 'name'];
    expect((await kubectl(cluster, names)).split('\n')).to.include('deployment.apps/old-controller');
    await helm('uninstall', 'old');
    expect(await kubectl(cluster, names)).to.equal('');
  });
});
