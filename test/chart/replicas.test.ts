import { expect } from 'chai';
import { refusal } from '../support/cluster/chart-objects.ts';
import { openChartRelease } from '../support/cluster/chart-release.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { aFolder } from '../support/redis.ts';

describe('the number of pods of the chart on a real API server', () => {
  let cluster: Cluster;
  const { folder, remove } = aFolder();
  before(async () => {
    cluster = await startCluster();
  });
  after(async () => {
    await cluster?.stop();
    remove();
  });

  const releaseOf = (name: string) => openChartRelease(cluster, folder, name);

  it('stays after kubectl scale when the release is upgraded, and is that of the values elsewhere', async () => {
    const { helm, scale, numberOf } = releaseOf('scaled');
    await helm('install', '--create-namespace');
    await scale('controller', 5);
    await helm('upgrade', '--set', 'controller.replicas=3,egress.replicas=3');
    expect([await numberOf('controller'), await numberOf('egress')]).to.deep.equal([5, 3]);
    expect(await refusal(helm('rollback', '1'))).to.match(/conflict with "kubectl" with subresource "scale"/);
    await helm('rollback', '1', '--force-conflicts');
    expect(await numberOf('controller')).to.equal(2);
  });

  it('is that of the values at an upgrade by Flux, too, which writes the field in another name than Helm', async () => {
    const { helm, scale, numberOf } = releaseOf('flux');
    await helm('install', '--create-namespace');
    const name = [{ op: 'replace', path: '/metadata/managedFields/0/manager', value: 'helm-controller' }];
    for (const component of ['controller', 'egress']) {
      const words = [
        'patch',
        'deployment',
        `flux-${component}`,
        '-n',
        'flux',
        '--type=json',
        '-p',
        JSON.stringify(name),
      ];
      await kubectl(cluster, words);
    }
    await scale('egress', 5);
    // Helm asks before it takes a field from a program of another name; Flux does not meet its own name as another.
    await helm('upgrade', '--set', 'controller.replicas=3,egress.replicas=3', '--force-conflicts');
    expect([await numberOf('controller'), await numberOf('egress')]).to.deep.equal([3, 5]);
  });

  it('stays when an autoscaler is enabled, and is the number of the autoscaler at later upgrades and rollbacks', async () => {
    const { helm, scale, numberOf } = releaseOf('autoscaled');
    await helm('install', '--create-namespace', '--set', 'api.replicas=5');
    const enabled = ['--set', 'api.replicas=5,api.autoscaling.enabled=true,api.autoscaling.minReplicas=5'];
    await helm('upgrade', ...enabled);
    expect(await numberOf('api')).to.equal(5);
    await helm('upgrade', ...enabled);
    expect(await numberOf('api'), 'before the autoscaler has changed it').to.equal(5);
    await scale('api', 8);
    await helm('upgrade', ...enabled);
    await scale('api', 9);
    await helm('upgrade', ...enabled);
    expect(await numberOf('api')).to.equal(9);
    await scale('api', 7);
    await helm('rollback', '4');
    expect(await numberOf('api'), 'after the rollback').to.equal(7);
  });

  it('stays when an autoscaler is enabled in a release that is merged on the side of the client, as Helm 3 does', async () => {
    const { helm, scale, numberOf } = releaseOf('merged');
    await helm('install', '--create-namespace', '--server-side=false', '--set', 'api.replicas=5');
    const enabled = ['--set', 'api.autoscaling.enabled=true'];
    await helm('upgrade', ...enabled);
    expect(await numberOf('api')).to.equal(5);
    await scale('api', 8);
    await helm('upgrade', ...enabled);
    expect(await numberOf('api'), 'after the autoscaler has changed it').to.equal(8);
  });
});
