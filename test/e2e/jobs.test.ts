import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type HostileSource, hostilePlugin, startHostileSource } from '../attack/hostile-source.ts';
import { type Cluster, quickLoss, startCluster } from '../support/cluster/cluster.ts';
import { completed, expectNoSecrets, failed, runJobEndToEnd } from '../support/cluster/end-to-end.ts';
import {
  addFolderToImage,
  findWorkerArchive,
  shellImage,
  workerImage,
  writeShellImage,
} from '../support/cluster/image.ts';
import { type Installation, openInstallation } from '../support/cluster/installation.ts';
import { kubectl } from '../support/cluster/kubectl.ts';
import { type Network, openNetwork } from '../support/cluster/network.ts';
import { type Node, startNode } from '../support/cluster/node.ts';
import { type JobTraces, readJobTraces, type SubmittedJob } from '../support/cluster/submitted-job.ts';
import { runProgram } from '../support/operator.ts';
import { until } from '../support/until.ts';
import { attackPods, hostileImage } from './pod-attacks.ts';

const isLong = process.env.ROUNDS !== undefined;
const namespace = 'workers';
const interrupted: JobTraces = {
  ...completed,
  ...{ interruptions: 1, attempts: ['worker_lost', 'completed'], objects: ['2/media.mp4'] },
};
/** More than the disk of a worker whose files may have as many bytes as here. */
const fileBytes = 1_000_000;
const tooMuch = 300 * 2 ** 20;

/** The fields of a pod that tests need. */
interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly spec: { readonly nodeName?: string };
}

describe('whole jobs on real nodes', function () {
  this.timeout(600_000);
  const folder = mkdtempSync(join(tmpdir(), 'trawl-test-'));
  let network: Network;
  let cluster: Cluster;
  const nodes: Node[] = [];
  let trawl: Installation;
  let source: HostileSource;

  before(async () => {
    const archive = findWorkerArchive();
    const shell = join(folder, 'shell.tar');
    writeShellImage(shell);
    // Imported behind the one that it extends.
    const hostile = join(folder, 'x-hostile.tar');
    addFolderToImage(hostile, archive, hostilePlugin, hostileImage);
    source = await startHostileSource();
    network = openNetwork();
    cluster = await startCluster({ address: network.address, flags: quickLoss });
    const { kubeconfig } = cluster;
    const env = {
      ...{ TRAWL_WORKER_AWAY_SECONDS: '1', TRAWL_WORKER_HOST_USERS: 'true', TRAWL_WORKER_MEMORY: '512Mi' },
      ...{ TRAWL_MAX_FILE_BYTES: String(fileBytes), TRAWL_ATTEMPTS: '1' },
    };
    const starting = [1, 2].map(async (number) => {
      nodes.push(await startNode(cluster, network, number, [shell, archive, hostile]));
    });
    const opening = async () => {
      trawl = await openInstallation({ kubeconfig, image: workerImage, namespace, address: network.address, env });
      await trawl.startController();
    };
    const all = [...starting, opening()];
    // What has started is to be known when it is ended again, also when the rest did not start.
    await Promise.allSettled(all);
    await Promise.all(all);
  });
  after(async () => {
    await trawl?.close();
    for (const node of nodes) await node.remove();
    await cluster?.stop();
    network?.close();
    await source?.stop();
    rmSync(folder, { recursive: true });
  });

  const podOf = async ({ id }: Pick<SubmittedJob, 'id'>, attempt: number): Promise<Pod | undefined> => {
    const selector = `batch.kubernetes.io%2Fjob-name%3D${id}-${attempt}`;
    const path = `/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`;
    return (await cluster.admin.ask<{ items: Pod[] }>('GET', path)).items[0];
  };
  const nodeOf = ({ spec }: Pod): Node => {
    const node = nodes.find(({ name }) => name === spec.nodeName);
    if (!node) throw new Error(`there is no node ${spec.nodeName}`);
    return node;
  };
  /** The node of an attempt, as soon as it has one. */
  const whereIs = (order: SubmittedJob, attempt: number, seconds: number) =>
    until(async () => (await podOf(order, attempt))?.spec.nodeName, seconds, `attempt ${attempt} is on a node`);
  /** Submits a film that does not come before it is let go; answers its job, with its pod as soon as that asks for the film. */
  const startHeld = async (film = 'clip.mp4') => {
    const letGo = trawl.source.hold();
    trawl.source.forget();
    const order = await trawl.submit(`/held/${film}`);
    await until(() => trawl.source.asked.length > 0, 30, 'the film is asked for');
    const pod = await podOf(order, 1);
    if (!pod) throw new Error('only pods ask for films');
    return { order, pod, letGo };
  };

  it('a job ends with its file in S3, one charge and one webhook, and nothing of it is left', () =>
    runJobEndToEnd(trawl));

  it('a pod of another shape is refused where those of workers run', async () => {
    const { order, pod, letGo } = await startHeld();
    const worker = await cluster.admin.ask('GET', `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}`);
    const { nodeName: _, ...spec } = worker.spec;
    const { labels, annotations, finalizers, ownerReferences } = worker.metadata;
    const refusal = (change: object) => {
      const other = { ...spec, ...change };
      const asked = cluster.admin.ask('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
        metadata: { name: 'another', labels, annotations, finalizers, ownerReferences },
        spec: other,
      });
      return asked.then(
        () => 'it was let in',
        (error: Error) => error.message,
      );
    };
    expect(await refusal({})).to.equal('it was let in');
    const [container] = spec.containers;
    expect(await refusal({ containers: [{ ...container, image: shellImage }] })).to.include('trawl: only the image');
    expect(await refusal({ containers: [{ ...container, command: ['sh'] }] })).to.include(
      'trawl: workers have no command',
    );
    const env = [...container.env, { name: 'NODE_OPTIONS', value: '--import=/scratch/x.js' }];
    expect(await refusal({ containers: [{ ...container, env }] })).to.include('trawl: only the env of workers');
    letGo();
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(completed);
  });

  it('a job whose pod is evicted is interrupted, and done by its next attempt', async () => {
    const { order, pod, letGo } = await startHeld();
    const { name } = pod.metadata;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    await cluster.admin.ask('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, eviction);
    await whereIs(order, 2, 20);
    letGo();
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(interrupted);
  });

  it('a job whose node is drained is interrupted, and done on another node', async () => {
    const { order, pod, letGo } = await startHeld();
    const { name } = nodeOf(pod);
    await kubectl(cluster, ['drain', name, '--delete-emptydir-data', '--force', '--timeout=180s']);
    const other = await whereIs(order, 2, 20);
    await kubectl(cluster, ['uncordon', name]);
    letGo();
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(interrupted);
    expect(other).not.to.equal(name);
  });

  it('a job that waits for a node says so, and runs when there is one', async () => {
    for (const { name } of nodes) await kubectl(cluster, ['cordon', name]);
    const order = await trawl.submit('/films/clip.mp4');
    const why = async () => (await trawl.ask(order, `/v1/jobs/${order.id}`)).json.queue?.reason;
    await until(async () => (await why()) === 'No node of the cluster has room for it', 20, 'the caller is told');
    for (const { name } of nodes) await kubectl(cluster, ['uncordon', name]);
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(completed);
  });

  it('a job whose node dies is interrupted, and done on another node', async () => {
    const { order, pod, letGo } = await startHeld();
    const node = nodeOf(pod);
    await node.powerOff();
    const other = await whereIs(order, 2, 60);
    letGo();
    await node.powerOn();
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(interrupted);
    expect(other).not.to.equal(node.name);
    await until(() => workersIn(node).length === 0, 20, 'nothing of it runs on the node that is back');
  });

  it('a job that fills the disk of its pod ends as one whose file is too large', async () => {
    const { order, pod, letGo } = await startHeld();
    const volumes = join(nodeOf(pod).folder, 'var/lib/kubelet/pods', pod.metadata.uid, 'volumes');
    writeFileSync(join(volumes, 'kubernetes.io~empty-dir/work/fill'), Buffer.alloc(tooMuch));
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(failed('file_too_large'));
    letGo();
  });

  it('a job that fails tells its caller why, and nobody who may read the logs of pods a secret', async () => {
    const { order, pod, letGo } = await startHeld('missing.mp4');
    const log = kubectl(cluster, ['logs', '--follow', '--namespace', namespace, pod.metadata.name]);
    letGo();
    const facts = { ...failed('deleted'), status: 'NotFound', lines: [202, 404] };
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(facts);
    expect(await log).to.contain('attempt failed');
    const said = await log;
    expect([...trawl.secrets].filter((word) => said.includes(word))).to.deep.equal([]);
  });

  it('a job whose worker is out of memory ends as one whose worker failed', async () => {
    await trawl.startController({ TRAWL_WORKER_MEMORY: '40Mi' });
    const order = await trawl.submit('/films/clip.mp4');
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(failed('worker_failed'));
    await until(() => trawl.recordedObjects().includes('"OOMKilled"'), 5, 'the kernel has ended it');
  });

  it('a job whose time is up ends, whether its worker sees it or hangs', async () => {
    // Less than a source may be silent for, which is 15 s from the connection on.
    await trawl.startController({ TRAWL_JOB_SECONDS: '15' });
    const { order: hung, pod, letGo } = await startHeld();
    const [worker = 0] = workersIn(nodeOf(pod));
    nodeOf(pod).run('kill', '-STOP', String(worker));
    const order = await trawl.submit('/held/clip.mp4');
    expect(await readJobTraces(trawl, hung, 60)).to.deep.equal(failed('timeout'));
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(failed('timeout'));
    await until(() => nodes.flatMap(workersIn).length === 0, 20, 'no worker runs any more');
    letGo();
  });

  describe('a yt-dlp that was taken over', () =>
    attackPods(() => ({ cluster, trawl, source, workers: () => nodes.flatMap(workersIn) })));

  it('a job whose worker has no image says so to caller and operator while it waits, and then fails', async () => {
    await trawl.startController({ TRAWL_WORKER_IMAGE: 'local.test/missing:1', TRAWL_WORKER_START_SECONDS: '12' });
    const order = await trawl.submit('/films/clip.mp4');
    const why = async () => (await trawl.ask(order, `/v1/jobs/${order.id}`)).json.queue?.reason;
    const reason = 'The image of the worker is being fetched';
    await until(async () => (await why()) === reason, 20, 'the caller is told');
    expect(await trawl.admin('job', 'explain', order.id)).to.contain(reason);
    expect(await readJobTraces(trawl, order, 60)).to.deep.equal(failed('worker_failed'));
  });

  if (isLong) {
    it('a job whose worker hangs while no controller is there is ended by its kubelet', async function () {
      this.timeout(600_000);
      // Less than a source may be silent for, which is 15 s from the connection on.
      await trawl.startController({ TRAWL_JOB_SECONDS: '15' });
      const { order, pod, letGo } = await startHeld();
      const [worker = 0] = workersIn(nodeOf(pod));
      nodeOf(pod).run('kill', '-STOP', String(worker));
      await trawl.stopController();
      const isOver = () => trawl.recordedObjects().includes('"reason": "DeadlineExceeded"');
      await until(isOver, 150, 'the kubelet ends it');
      await trawl.startController();
      expect(await readJobTraces(trawl, order, 60)).to.deep.equal(failed('timeout'));
      letGo();
    });

    it('make e2e walks a job through whatever cluster it is given', async () => {
      const { code, out, err } = await runProgram('make', ['e2e'], {
        ...{ PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', TMPDIR: process.env.TMPDIR ?? '' },
        ...{ KUBECONFIG: cluster.kubeconfig, ADDRESS: network.address, TRAWL_WORKER_HOST_USERS: 'true' },
      });
      expect({ code, err }, out).to.deep.equal({ code: 0, err: '' });
    });
  }

  describe('after all of that', () => {
    it('nothing is left in the cluster, and nothing secret was ever stored in it', async () => {
      expect(await kubectl(cluster, ['get', 'all', '--all-namespaces', '--output', 'name'])).to.equal(
        'service/kubernetes',
      );
      expectNoSecrets(trawl, trawl.recordedObjects());
      const files = readdirSync(join(cluster.folder, 'etcd'), { recursive: true, withFileTypes: true });
      const written = files
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'));
      expectNoSecrets(trawl, written.join('\n'));
    });
  });
});

/** The workers that run on a node, by their ids there. */
function workersIn(node: Node): number[] {
  const lines = node.run('ps', '-eo', 'pid,args').split('\n');
  return lines.filter((line) => line.includes('main.ts worker')).map((line) => Number.parseInt(line, 10));
}
