import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Cluster, makeNamespace, quickLoss, startCluster } from '../support/cluster/cluster.ts';
import { shellImage, writeShellImage } from '../support/cluster/image.ts';
import { makeJob } from '../support/cluster/job.ts';
import { apply, kubectl } from '../support/cluster/kubectl.ts';
import { listHierarchies, type Network, openNetwork } from '../support/cluster/network.ts';
import { type Node, startNode } from '../support/cluster/node.ts';
import { processesOf } from '../support/worker.ts';

/** What remains of a node whose test was killed and whose bridge has gone: a file without a namespace, and cgroups. */
function leaveBehind(name: string): void {
  mkdirSync('/run/netns', { recursive: true });
  writeFileSync(`/run/netns/${name}`, '');
  for (const hierarchy of listHierarchies()) mkdirSync(join(hierarchy, name, 'kubepods'), { recursive: true });
}

describe('a real node', () => {
  let folder: string;
  let network: Network;
  let cluster: Cluster;
  let node: Node;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
    const archive = join(folder, 'shell.tar');
    writeShellImage(archive);
    network = openNetwork();
    leaveBehind(`${network.name}-n1`);
    cluster = await startCluster({ address: network.address, flags: quickLoss });
    node = await startNode(cluster, network, 1, [archive]);
    await makeNamespace(cluster, 'jobs', { 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  after(async () => {
    await node?.remove();
    await cluster?.stop();
    network?.close();
    rmSync(folder, { recursive: true });
    if (network) expect([...listLeft(network), ...processesOf(cluster.folder)]).to.deep.equal([]);
  });

  const waitFor = (job: string, condition: string) =>
    kubectl(cluster, ['wait', '-n', 'jobs', `job/${job}`, `--for=condition=${condition}`, '--timeout=180s']);

  const terminated = async (job: string) => {
    const words = ['get', 'pods', '-n', 'jobs', '-l', `batch.kubernetes.io/job-name=${job}`, '-o', 'json'];
    return JSON.parse(await kubectl(cluster, words)).items[0].status.containerStatuses[0].state.terminated;
  };

  it('has as much processor time as twenty processes of this machine, so that its pods go on beside other work', () => {
    const weightOf = (hierarchy: string, file: string) => {
      const path = join(hierarchy, `${network.name}-n1`, file);
      return existsSync(path) ? [Number(readFileSync(path, 'utf8'))] : [];
    };
    const shares = listHierarchies().flatMap((hierarchy) => [
      ...weightOf(hierarchy, 'cpu.shares').map((weight) => weight / 1024),
      ...weightOf(hierarchy, 'cpu.weight').map((weight) => weight / 100),
    ]);
    expect(shares).to.deep.equal([20]);
  });

  it('is not waited for when it ends at its start, and leaves nothing', async () => {
    const started = startNode(cluster, network, 2, [join(folder, 'nowhere.tar')]);
    const refusal = await started.then(
      () => 'started',
      ({ message }: Error) => message,
    );
    expect(refusal).to.match(/nowhere\.tar: no such file or directory/);
    expect(existsSync(join(cluster.folder, 'node-2'))).to.equal(false);
  });

  it('runs a Job as nobody, without rights, with a root it cannot write to', async () => {
    const script = `id -u; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; touch /x; echo y >/scratch/y && cat /scratch/y
      printf done >/dev/termination-log`;
    await apply(cluster, makeJob('restricted', { script }));
    await waitFor('restricted', 'Complete');
    expect(await terminated('restricted')).to.include({ exitCode: 0, message: 'done' });
    const log = await kubectl(cluster, ['logs', '-n', 'jobs', 'job/restricted']);
    // What it says on its two outputs comes in any order.
    expect(log.replaceAll('\t', ' ').split('\n')).to.have.members([
      '65532',
      'CapEff: 0000000000000000',
      'NoNewPrivs: 1',
      'Seccomp: 2',
      'touch: /x: Read-only file system',
      'y',
    ]);
  });

  it('lets its pods reach what listens on the bridge, and lets this machine run programs in it', async () => {
    const server = createServer((_, answer) => answer.end('hello')).listen(0, network.address);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await apply(
      cluster,
      makeJob('caller', { script: `wget -qO /dev/termination-log http://${network.address}:${port}/` }),
    );
    await waitFor('caller', 'Complete');
    server.close();
    expect((await terminated('caller')).message).to.equal('hello');
    expect(node.run('ctr', '--namespace', 'k8s.io', 'images', 'list', '--quiet')).to.include(shellImage);
  });

  it('ends a pod that takes more memory than it may', async () => {
    await apply(cluster, makeJob('greedy', { script: 'tail /dev/zero' }));
    await waitFor('greedy', 'Failed');
    expect(await terminated('greedy')).to.include({ exitCode: 137, reason: 'OOMKilled' });
  });

  it('is lost when its power goes off, and tells what has ended when it is on again', async () => {
    await apply(cluster, makeJob('lost', { script: 'sleep 1000' }));
    await kubectl(cluster, ['wait', '-n', 'jobs', 'job/lost', '--for=jsonpath={.status.ready}=1', '--timeout=180s']);
    await node.powerOff();
    expect(processesOf(node.folder)).to.deep.equal([]);
    await kubectl(cluster, ['wait', `node/${node.name}`, '--for=condition=Ready=Unknown', '--timeout=180s']);
    await node.powerOn();
    await waitFor('lost', 'Failed');
    expect((await terminated('lost')).exitCode).to.be.greaterThan(0);
  });
});

/** Lists the traces of a network on this machine. */
function listLeft({ name }: Network): string[] {
  const places = ['/run/netns', '/sys/class/net', ...listHierarchies()].filter((place) => existsSync(place));
  return places
    .flatMap((place) => readdirSync(place).map((entry) => join(place, entry)))
    .filter((path) => {
      const last = path.split('/').at(-1) ?? '';
      return last === name || last.startsWith(`${name}-`);
    });
}
