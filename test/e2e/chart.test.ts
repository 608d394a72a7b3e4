import { expect } from 'chai';
import { chart } from '../support/chart.ts';
import {
  type ChartGround,
  namespace,
  type ReachableRedis,
  startChartGround,
  workersNamespace,
} from '../support/cluster/chart-ground.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { type PolicyAgent, startPolicyAgent } from '../support/cluster/policy-agent.ts';
import { startTcpProxy } from '../support/cluster/tcp-proxy.ts';
import { startTestServer } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { allowedWays, findWays, listTargets } from './pod-ways.ts';

describe('the chart on a real node', function () {
  this.timeout(900_000);
  let ground: ChartGround;
  let agent: PolicyAgent | undefined;
  let succeed: ChartGround['succeed'];

  before(async () => {
    ground = await startChartGround(openRedis);
    succeed = ground.succeed;
  });
  after(async () => {
    await agent?.close();
    await ground?.close();
  });

  /** A removal waits for open jobs. */
  const soon = ['--set', 'uninstall.waitSeconds=1'];
  const testOf = (name: string) => ['test', 'trawl', '--logs', '--filter', `name=${name}`, '--timeout', '240s'];

  it('is installed with one command, and every pod is ready', async () => {
    const said = await succeed('install', 'trawl', chart, ...ground.values, ...soon);
    expect(said).to.include('Three commands lead to the first file');
    const { items } = JSON.parse(await kubectl(ground.cluster, ['get', 'pods', '-n', namespace, '-o', 'json']));
    expect(items).to.have.length(4);
  });

  it('has a doctor that finds nothing wrong as a Job beside the release', async () => {
    const only = ['--set', 'doctor.enabled=true', '--show-only', 'templates/doctor.yaml'];
    const objects = await succeed('template', 'trawl', chart, ...ground.values, ...only);
    await kubectl(ground.cluster, ['apply', '-f', '-'], objects);
    const words = ['get', 'job', 'trawl-doctor', '-n', namespace, '-o', 'json'];
    const status = async () => JSON.parse(await kubectl(ground.cluster, words)).status;
    const done = await until(
      async () => {
        const { succeeded = 0, failed = 0 } = await status();
        return succeeded + failed > 0 && { succeeded };
      },
      60,
      'the doctor has answered',
    );
    const selected = ['-l', 'app.kubernetes.io/component=doctor', '--tail=-1'];
    const said = await kubectl(ground.cluster, ['logs', '-n', namespace, ...selected]);
    expect(done, said).to.deep.equal({ succeeded: 1 });
    expect(said)
      .to.match(/This pod is on the node node-1/)
      .and.match(/workers lets in workers/);
    expect(said).not.to.match(/problem|warning/);
    await kubectl(ground.cluster, ['delete', '-f', '-', '--ignore-not-found'], objects);
  });

  it('passes its own test with TLS between the pods: a job from the account to its file, charged once', async () => {
    const said = await succeed(...testOf('trawl-test'));
    expect(said).to.include('A worker downloaded the film').and.include('The job was charged once');
  });

  it('says that this cluster does not enforce network policies', async () => {
    const { code, said } = await ground.helm(...testOf('trawl-stranger'));
    expect(code).to.equal(1);
    expect(said).to.include('The cluster does not enforce network policies');
  });

  it('lets each pod reach what it needs and nothing else, once an agent enforces the policies', async () => {
    const key = await ground.openAccount('trawl', 'ways', 1);
    const letGo = ground.source.hold();
    ground.source.forget();
    const jobId = await ground.submit(key, '/held/clip.mp4');
    await until(() => ground.source.asked.length > 0, 60, 'a worker asks for the film');
    const targets = listTargets(ground);
    // Without an agent each way that is forbidden below is open.
    const all = async () => Object.values(await findWays(ground, targets)).map((ways) => ways.length);
    await until(async () => (await all()).join() === '8,8,8,8,9', 20, 'every way is open without an agent');
    agent = await startPolicyAgent(ground.cluster, ground.network, 1);
    const found = await until(
      async () => {
        const ways = await findWays(ground, targets);
        return JSON.stringify(ways) === JSON.stringify(allowedWays) && ways;
      },
      30,
      'the policies are enforced',
    ).catch(() => findWays(ground, targets));
    expect(found).to.deep.equal(allowedWays);
    letGo();
    await ground.completes(key, jobId);
    expect(await succeed(...testOf('trawl-test'))).to.include('The job was charged once');
    expect(await succeed(...testOf('trawl-stranger'))).to.include('The cluster enforces network policies');
  });

  it('is upgraded and rolled back while a job runs, and refuses to be removed meanwhile', async () => {
    const key = await ground.openAccount('trawl', 'films', 5);
    const letGo = ground.source.hold();
    ground.source.forget();
    const jobId = await ground.submit(key, '/held/clip.mp4');
    await until(() => ground.source.asked.length > 0, 60, 'a worker asks for the film');
    const { code, said } = await ground.helm('uninstall', 'trawl', '--timeout', '120s');
    expect(code).to.equal(1);
    expect(said).to.include('1 job is open');
    // Helm upgrades no release that it has begun to uninstall.
    await succeed('rollback', 'trawl', '1', '--wait', '--timeout', '240s');
    await succeed('upgrade', 'trawl', chart, ...ground.values, ...soon, '--set', 'settings.TRAWL_LOG_LEVEL=debug');
    await succeed('rollback', 'trawl', '1', '--wait', '--timeout', '240s');
    letGo();
    await ground.completes(key, jobId);
    await ground.completes(key, await ground.submit(key, '/films/clip.mp4'));
    expect(await ground.ask(key, '/v1/usage')).to.include({ remaining: 3, held: 0 });
  });

  it('is removed with one command, and leaves only the Secrets of the operator', async () => {
    await removeRelease('trawl');
  });

  const removeRelease = async (release: string) => {
    const { cluster } = ground;
    await succeed('uninstall', release, '--wait', '--timeout', '240s');
    const gone = async () => !(await kubectl(cluster, ['get', 'namespaces', '-o', 'name'])).includes(workersNamespace);
    await until(gone, 60, 'the namespace of the workers is gone');
    const kinds = 'all,networkpolicies,serviceaccounts,pvc,configmaps,roles,secrets,validatingadmissionpolicies';
    const left = async () =>
      (await kubectl(cluster, ['get', kinds, '-n', namespace, '-o', 'name'])).trim().split('\n').sort();
    const own = [
      'configmap/kube-root-ca.crt',
      ...['egress-tls', 'gateway-tls', 'inspector-tls', 'redis', 'store', 'trawl'].map((name) => `secret/${name}`),
      'serviceaccount/default',
    ];
    const others = async () =>
      (await left()).filter((name) => !/^pod\/.*-(test|stranger)$|configmap\/.*-test/.test(name));
    await until(async () => (await others()).length === own.length, 60, 'the pods are gone');
    expect(await others()).to.deep.equal(own);
  };
});

async function openRedis(address: string): Promise<ReachableRedis> {
  const redis = await startTestServer();
  // The doctor wants a limit.
  await redis.connection.send(['CONFIG', 'SET', 'maxmemory', '256mb']);
  const proxy = await startTcpProxy(redis.url, address);
  const port = Number(new URL(proxy.url).port);
  const stop = async () => {
    await proxy.stop();
    await redis.stop();
  };
  return { url: `redis://${address}:${port}`, peers: [{ cidr: `${address}/32`, port }], stop };
}
