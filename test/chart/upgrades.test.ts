import { expect } from 'chai';
import { letIn, refusal } from '../support/cluster/chart-objects.ts';
import { openChartRelease } from '../support/cluster/chart-release.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

describe('an upgrade of the chart on a real API server', () => {
  let cluster: Cluster;
  const { folder, remove } = aFolder();
  before(async () => {
    cluster = await startCluster();
  });
  after(async () => {
    await cluster?.stop();
    remove();
  });

  const stateOf = (namespace: string) =>
    kubectl(cluster, ['get', 'namespace', namespace, '-o', 'jsonpath={.status.phase}']);

  it('without the namespace of the workers is refused, and leaves it there once it has the mark that Helm knows', async () => {
    const { helm } = openChartRelease(cluster, folder, 'kept');
    await helm('install', '--create-namespace');
    const own = ['--set', 'workers.createNamespace=false'];
    const said = await refusal(helm('upgrade', ...own));
    expect(said).to.include('workers.createNamespace: this upgrade would remove the namespace kept-workers');
    expect(await stateOf('kept-workers')).to.equal('Active');
    const [, command = ''] = /before: kubectl (.*)/.exec(said) ?? [];
    await kubectl(cluster, command.split(' '));
    for (const values of [own, own, [], own]) expect(await refusal(helm('upgrade', ...values))).to.equal(letIn);
    expect(await stateOf('kept-workers')).to.equal('Active');
  });

  it('with another namespace of the workers is refused while Jobs are in that of before, and removes it when none is', async () => {
    const { helm } = openChartRelease(cluster, folder, 'moved');
    await helm('install', '--create-namespace');
    const other = ['--set', 'workers.namespace=moved-films'];
    const jobs = ['-n', 'moved-workers', 'job'];
    const suspended = {
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a', namespace: 'moved-workers' } },
      spec: { suspend: true, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a' }] } } },
    };
    await kubectl(cluster, ['delete', 'validatingadmissionpolicybinding', 'trawl-workers-in-moved-workers']);
    const isMade = async () => (await refusal(kubectl(cluster, ['create', '-f', '-'], suspended))) === letIn;
    await until(isMade, 20, 'the namespace is open to any Job');
    expect(await refusal(helm('upgrade', ...other))).to.include(
      'workers.namespace: 1 Jobs of workers are in moved-workers',
    );
    expect(await stateOf('moved-workers')).to.equal('Active');
    await kubectl(cluster, ['delete', ...jobs, 'a']);
    expect(await refusal(helm('upgrade', ...other))).to.equal(letIn);
    expect(await stateOf('moved-films')).to.equal('Active');
    expect(await stateOf('moved-workers').catch(() => 'gone')).not.to.equal('Active');
  });
});
