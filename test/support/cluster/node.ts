import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { tool } from '../tools.ts';
import { until } from '../until.ts';
import type { Cluster } from './cluster.ts';
import { listHierarchies, type Network, plugIn, run, unplug } from './network.ts';
import { writeNodeFiles } from './node-files.ts';

/**
 * A real node: kubelet, containerd and runc in a network, mount and process namespace of their own. Needs root.
 *
 *     const network = openNetwork();                                        // network.ts
 *     const cluster = await startCluster({ address: network.address });    // cluster.ts
 *     writeShellImage(archive);                                             // image.ts, or any OCI archive
 *     const node = await startNode(cluster, network, 1, [archive]);
 *     await node.powerOff();                                                // everything in it ends at once
 *     await node.remove();
 *     await cluster.stop();
 *     network.close();
 */
export interface Node {
  readonly name: string;
  readonly address: string;
  /** The folder with `kubelet.log` and `containerd.log`. */
  readonly folder: string;
  /** Runs a program in the node, such as `ctr`, and answers what it printed. */
  run(program: string, ...words: string[]): string;
  /** Kills every process of the node at once. Its object stays, and the API server is told nothing. */
  powerOff(): Promise<void>;
  /** Powers off, and leaves nothing of the node on this machine. */
  remove(): Promise<void>;
}

const script = join(import.meta.dirname, 'node-init.sh');

/** Starts the node of this number, from 1, with the images of some OCI archives, and waits until it is ready for pods. */
export async function startNode(
  cluster: Cluster,
  network: Network,
  number: number,
  archives: readonly string[],
): Promise<Node> {
  const name = `node-${number}`;
  const address = network.nodeAddress(number);
  const folder = join(cluster.folder, name);
  mkdirSync(join(folder, 'images'), { recursive: true });
  for (const archive of archives) copyFileSync(archive, join(folder, 'images', basename(archive)));
  const { key, cert } = cluster.authority.issue({ name, hosts: [name, address] });
  const place = plugIn(network, number);
  const podRange = network.podRange(number);
  const files = { folder, group: place, podRange, machine: network.address, ca: cluster.authority.cert };
  writeNodeFiles({ ...files, key, cert });
  makeGroups(place);
  const flags = [
    `--config=${join(folder, 'kubelet.yaml')}`,
    `--kubeconfig=${cluster.kubeconfigOf({ name: `system:node:${name}`, group: 'system:nodes' })}`,
    `--hostname-override=${name}`,
    `--node-ip=${address}`,
    `--cert-dir=${join(folder, 'certificates')}`,
  ];
  const { powerOff, inside } = spawnNode(place, folder, flags);
  const remove = async () => {
    await powerOff();
    unplug(place);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await until(() => isReady(cluster, name), 60, `${name} is ready`);
  } catch (error) {
    const log = ['kubelet.log', 'containerd.log'].map((file) => readTail(join(folder, file))).join('\n');
    await remove();
    throw new Error(log, { cause: error });
  }
  return {
    name,
    address,
    folder,
    run: (program, ...words) => run('nsenter', ...inside(), program, ...words),
    powerOff,
    remove,
  };
}

/** The node's first process, behind the one that waits for it here and ends with it. */
function spawnNode(place: string, folder: string, flags: readonly string[]) {
  const parent = ['setpriv', '--pdeathsig', 'KILL', 'nsenter', `--net=/run/netns/${place}`];
  const own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
  const [program = '', ...words] = [...parent, ...own, 'bash', script, ...flags];
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, NODE: folder, KUBELET: tool('kubelet') };
  const child = spawn(program, words, { env, detached: true, stdio: ['ignore', 'inherit', 'inherit'] });
  const first = () => readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
  return {
    inside: () => ['--target', first(), '--net', '--mount', '--pid'],
    powerOff: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const end = once(child, 'exit');
      // The end of the first process of a process namespace comes after that of all the others.
      process.kill(Number(first()), 'SIGKILL');
      await end;
    },
  };
}

async function isReady({ admin }: Cluster, name: string): Promise<boolean> {
  const node = await admin.ask('GET', `/api/v1/nodes/${name}`).catch(() => null);
  const conditions: { type: string; status: string }[] = node?.status.conditions ?? [];
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

function makeGroups(name: string): void {
  for (const hierarchy of listHierarchies()) {
    mkdirSync(join(hierarchy, name), { recursive: true });
    // A new cgroup of this controller has neither processors nor memory, so nothing can run in it.
    if (basename(hierarchy) !== 'cpuset') continue;
    for (const file of ['cpuset.cpus', 'cpuset.mems']) cpSync(join(hierarchy, file), join(hierarchy, name, file));
  }
}

function readTail(file: string): string {
  return readFileSync(file, 'utf8').slice(-2000);
}
