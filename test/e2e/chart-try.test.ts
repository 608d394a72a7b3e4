import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { chart, runTool } from '../support/chart.ts';
import { type Cluster, startCluster } from '../support/cluster/cluster.ts';
import { controllers } from '../support/cluster/control-plane-process.ts';
import { writeShellImage } from '../support/cluster/image.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { type Network, openNetwork } from '../support/cluster/network.ts';
import { type Node, startNode } from '../support/cluster/node.ts';
import { type ClusterServices, startServices } from '../support/cluster/services.ts';
import { buildMilliseconds, script } from '../support/images.ts';
import { aFolder } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { tool } from '../support/tools.ts';
import { until } from '../support/until.ts';

const namespace = 'media';
const volumes = ['one', 'two', 'three'];
const archives = ['server', 'worker', 'redis', 's3'];

/** Only in the long form: two more images are built for it. */
if (process.env.ROUNDS !== undefined) describe('the chart for a look', testLook);

function testLook(this: Mocha.Suite): void {
  this.timeout(600_000);
  const { folder, remove } = aFolder();
  let network: Network;
  let cluster: Cluster;
  let node: Node;
  let services: ClusterServices;
  let source: Source;

  before(async function () {
    this.timeout(buildMilliseconds);
    const images = buildArchives(folder);
    const shell = join(folder, 'shell.tar');
    writeShellImage(shell);
    network = openNetwork();
    const ofVolumes = ['persistentvolume-binder-controller', 'persistentvolumeclaim-protection-controller'];
    const all = [...controllers, 'statefulset-controller', ...ofVolumes];
    const flags = {
      'kube-apiserver': ['--endpoint-reconciler-type=lease'],
      'kube-controller-manager': [`--controllers=${all.join(',')}`],
    };
    cluster = await startCluster({ address: network.address, flags });
    node = await startNode(cluster, network, 1, [shell, ...images], { hasDns: true });
    services = await startServices(cluster, network, 1);
    source = await startSource(network.address);
    await kubectl(cluster, ['create', 'namespace', namespace]);
    await kubectl(cluster, ['label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted']);
    await apply(cluster, ...volumes.map((name) => makeVolume(node, name)));
  });
  after(async () => {
    await services?.close();
    await node?.remove();
    await cluster?.stop();
    network?.close();
    await source?.stop();
    remove();
  });

  const helm = (...words: readonly string[]) => askHelm(cluster, folder, words);
  const values = () => [
    ...['--values', join(chart, 'values-try.yaml'), '--wait', '--set', 'workers.hostUsers=true,workers.cpu=10m'],
    ...['--set', `settings.TRAWL_EGRESS_ALLOW=${network.address}/32:*,test.film=${source.url}/films/clip.mp4`],
  ];
  const admin = (...words: readonly string[]) => {
    const program = ['exec', 'deployment/trawl-controller', '-n', namespace, '--', 'node', '/opt/trawl/src/main.ts'];
    return kubectl(cluster, [...program, 'admin', ...words]);
  };
  const generated = async () => {
    const words = ['get', 'secret', 'trawl-generated', '-n', namespace, '-o', 'jsonpath={.data}'];
    return JSON.parse(await kubectl(cluster, words));
  };

  it('is installed with one command, and a job becomes a file and one charge', async () => {
    expect(await helm('install', 'trawl', chart, ...values())).to.include('the volume claim data-trawl-redis-0');
    const said = await helm('test', 'trawl', '--logs', '--filter', 'name=trawl-test');
    expect(said).to.include('The job was charged once');
    const accounts = await admin('account', 'list');
    expect(accounts, 'the account of the test is suspended').to.match(/^helm-test-\d+ .* paid +yes /m);
    const inRedis = ['exec', 'statefulset/trawl-redis', '-n', namespace, '--', 'redis-cli'];
    expect(await kubectl(cluster, [...inRedis, 'INFO', 'memory'])).to.include('maxmemory:');
  });

  it('comes back by itself from an upgrade to images that are nowhere', async () => {
    const broken = ['--set', 'images.server.tag=none,images.redis.tag=none', '--rollback-on-failure'];
    const upgrade = helm('upgrade', 'trawl', chart, ...values(), ...broken, '--timeout', '60s');
    expect(await upgrade.catch(({ message }) => message)).to.match(/UPGRADE FAILED.* has been rolled back/s);
    const said = await helm('test', 'trawl', '--logs', '--filter', 'name=trawl-test');
    expect(said).to.include('The job was charged once');
  });

  it('keeps its Secrets at an upgrade, and them and the volume of Redis when it is removed', async () => {
    await admin('account', 'open', 'kept', '--credits', '7');
    const before = await generated();
    await helm('upgrade', 'trawl', chart, ...values(), '--set', 'api.podLabels.tier=front');
    expect(await generated()).to.deep.equal(before);
    await helm('uninstall', 'trawl', '--wait');
    expect(await generated()).to.deep.equal(before);
    const claims = () => kubectl(cluster, ['get', 'pvc', '-n', namespace, '-o', 'name']);
    await until(
      async () => (await claims()).trim() === 'persistentvolumeclaim/data-trawl-redis-0',
      60,
      'one claim is left',
    );
  });

  it('finds its record when it is installed again, and works on it', async () => {
    await helm('install', 'trawl', chart, ...values());
    expect(JSON.parse(await admin('account', 'show', 'kept', '--json'))).to.nested.include({ 'usage.remaining': 7 });
    // The removal has left a drain of two minutes.
    await admin('drain', 'off');
    const said = await helm('test', 'trawl', '--logs', '--filter', 'name=trawl-test');
    expect(said).to.include('The job was charged once');
  });
}

/** Runs Helm and returns what it prints. */
async function askHelm(cluster: Cluster, folder: string, words: readonly string[]): Promise<string> {
  const homes = { HOME: folder, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder, HELM_DATA_HOME: folder };
  const env = { PATH: process.env.PATH, KUBECONFIG: cluster.kubeconfig, ...homes };
  const asked = runTool(tool('helm'), ['--namespace', namespace, '--timeout', '240s', ...words], { env });
  return asked.then(
    ({ stdout }) => stdout,
    async ({ stdout, stderr }) => {
      const pods = await kubectl(cluster, ['get', 'pods,pvc,events', '--all-namespaces']);
      throw new Error(`helm ${words.join(' ')}: ${stdout}${stderr}\n${pods}`);
    },
  );
}

/** Builds the four images unless they are there; returns their archives. */
function buildArchives(folder: string): string[] {
  // Programs of the build leave caches in the temporary folder.
  const env = { ...process.env, TRY: '1', TMPDIR: folder };
  execFileSync(script, { env, stdio: 'ignore' });
  const built = execFileSync(script, ['--where'], { env, encoding: 'utf8' }).trim();
  return archives.map((name) => join(built, `${name}.tar`));
}

function makeVolume(node: Node, name: string): object {
  const path = join(node.folder, 'volumes', name);
  mkdirSync(path, { recursive: true });
  // The kubelet gives no folder of the node to the group of a pod.
  chmodSync(path, 0o777);
  const spec = { capacity: { storage: '8Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path } };
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec };
}
