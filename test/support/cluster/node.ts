import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { tool } from '../tools.ts';
import { until } from '../until.ts';
import type { Cluster } from './cluster.ts';
import { addNodeNetwork, listHierarchies, type Network, removeNodeNetwork, run } from './network.ts';
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
  /** The folder with `node.log`, `containerd.log` and `kubelet.log`. */
  readonly folder: string;
  /** Runs a program in the node, such as `ctr`, and answers what it printed. */
  run(program: string, ...words: string[]): string;
  /** Kills every process of the node at once. Its object stays, and the API server is told nothing. */
  powerOff(): Promise<void>;
  /** Starts the node again with its disk, and waits until it is ready. */
  powerOn(): Promise<void>;
  /** Powers off, and leaves nothing of the node on this machine. */
  remove(): Promise<void>;
}

const script = join(import.meta.dirname, 'node-init.sh');
/** A node counts as so many processes of the machine; by default, all of its pods together would count as one. */
const weightOfNode = 20;
/** File of the weight of a cgroup, by version, and what a process without a cgroup weighs beside it. */
const weightOfProcess = { 'cpu.shares': 1024, 'cpu.weight': 100 };

/** Starts the node of this number, from 1, with the images of some OCI archives, and waits until it is ready for pods. */
export async function startNode(
  cluster: Cluster,
  network: Network,
  number: number,
  archives: readonly string[],
  { hasDns = false } = {},
): Promise<Node> {
  const name = `node-${number}`;
  const address = network.nodeAddress(number);
  const folder = join(cluster.folder, name);
  const { key, cert } = cluster.authority.issue({ name, hosts: [name, address] });
  const place = addNodeNetwork(network, number);
  // Its disk is in memory: it holds thousands of files, which some disks take minutes to remove.
  mkdirSync(folder);
  // It offers more than half of the memory, because each worker asks for a gibibyte that it hardly uses.
  run('mount', '-t', 'tmpfs', '-o', 'size=32g', place, folder);
  const images = join(folder, 'images');
  mkdirSync(images);
  for (const archive of archives) symlinkSync(archive, join(images, basename(archive)));
  const podRange = network.podRange(number);
  const files = { folder, group: place, podRange, machine: network.address, ca: cluster.authority.cert };
  writeNodeFiles({ ...files, key, cert, hasDns });
  makeGroups(place);
  const flags = [
    `--config=${join(folder, 'kubelet.yaml')}`,
    `--kubeconfig=${cluster.kubeconfigOf({ name: `system:node:${name}`, group: 'system:nodes' })}`,
    `--hostname-override=${name}`,
    `--node-ip=${address}`,
    `--cert-dir=${join(folder, 'certificates')}`,
  ];
  const power = plug(place, folder, flags);
  const powerOn = async () => {
    const second = Math.floor(Date.now() / 1000);
    power.on();
    const whileOn = (state: boolean) => {
      if (power.hasEnded()) throw new Error(`${name} has ended`);
      return state;
    };
    await until(() => whileOn(readdirSync(images).length === 0), 90, `${name} has its images`);
    await until(async () => whileOn(await isReady(cluster, name, second)), 60, `${name} is ready`);
  };
  const remove = async () => {
    await power.off();
    removeNodeNetwork(place);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await powerOn();
  } catch (error) {
    const logs = ['node.log', 'containerd.log', 'kubelet.log'].map((file) => join(folder, file));
    const said = logs.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'utf8').slice(-2000));
    await remove();
    throw new Error(said.join('\n'), { cause: error });
  }
  const runInside = (program: string, ...words: string[]) => run('nsenter', ...power.inside(), program, ...words);
  return { name, address, folder, run: runInside, powerOff: power.off, powerOn, remove };
}

/** Starts the node's first process behind a local one that waits for it and ends with it; `off` kills them. */
function plug(place: string, folder: string, flags: readonly string[]) {
  const parent = ['--pdeathsig', 'KILL', 'nsenter', `--net=/run/netns/${place}`];
  const own = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private'];
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, NODE: folder, KUBELET: tool('kubelet') };
  let child: ChildProcess | null = null;
  const hasEnded = () => child === null || child.exitCode !== null || child.signalCode !== null;
  const first = () => Number(readFileSync(`/proc/${child?.pid}/task/${child?.pid}/children`, 'utf8'));
  return {
    on: () => {
      const log = openSync(join(folder, 'node.log'), 'a');
      const words = [...parent, ...own, 'bash', script, ...flags];
      child = spawn('setpriv', words, { env, detached: true, stdio: ['ignore', log, log] });
      closeSync(log);
    },
    off: async () => {
      if (child === null || hasEnded()) return;
      const end = once(child, 'exit');
      // The first process of a process namespace ends after all the others. It may not be there yet.
      process.kill(first() || Number(child.pid), 'SIGKILL');
      await end;
    },
    hasEnded,
    inside: () => ['--target', String(first()), '--net', '--mount', '--pid'],
  };
}

/** Returns true when the kubelet has reported since then that it is ready. */
async function isReady({ admin }: Cluster, name: string, second: number): Promise<boolean> {
  const node = await admin.ask('GET', `/api/v1/nodes/${name}`).catch(() => null);
  const conditions: { type: string; status: string; lastHeartbeatTime: string }[] = node?.status.conditions ?? [];
  return conditions.some(
    ({ type, status, lastHeartbeatTime }) =>
      type === 'Ready' && status === 'True' && Date.parse(lastHeartbeatTime) >= second * 1000,
  );
}

function makeGroups(name: string): void {
  for (const hierarchy of listHierarchies()) {
    mkdirSync(join(hierarchy, name), { recursive: true });
    for (const [file, weight] of Object.entries(weightOfProcess)) {
      const path = join(hierarchy, name, file);
      if (existsSync(path)) writeFileSync(path, String(weightOfNode * weight));
    }
    // A new cgroup of this controller has neither processors nor memory, so nothing can run in it.
    if (basename(hierarchy) !== 'cpuset') continue;
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      writeFileSync(join(hierarchy, name, file), readFileSync(join(hierarchy, file)));
    }
  }
}
