import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A bridge of this machine for one cluster with real nodes: its control plane listens on it, and its nodes are plugged into it. */
export interface Network {
  /** The bridge's name, and the start of the names of all that belongs to it. */
  readonly name: string;
  /** The bridge's own address, where nodes and pods reach this machine. */
  readonly address: string;
  /** The addresses of the node that has this number, from 1, and of its pods. */
  nodeAddress(number: number): string;
  podRange(number: number): string;
  /** Removes the bridge with all that belongs to it. Nothing may run in its nodes any more. */
  close(): void;
}

const prefix = 'trawl';
const most = 200;

/** Makes the bridge, with addresses that no other has. Clears away what a test left behind that was killed. */
export function openNetwork(): Network {
  for (const name of readdirSync('/sys/class/net').filter(isAbandoned)) clear(name);
  for (let number = 0; number < most; number++) {
    const name = `${prefix}${number}`;
    // Of several tests that try at once, one makes the bridge of this name.
    if (existsSync(`/sys/class/net/${name}`) || !succeeds('ip', 'link', 'add', name, 'type', 'bridge')) continue;
    writeFileSync(`/sys/class/net/${name}/ifalias`, String(process.pid));
    const address = `10.210.${number}.1`;
    run('ip', 'address', 'add', `${address}/24`, 'dev', name);
    run('ip', 'link', 'set', name, 'up');
    const nodeAddress = (node: number) => `10.210.${number}.${10 + node}`;
    const podRange = (node: number) => `10.${210 + node}.${number}.0/24`;
    return { name, address, nodeAddress, podRange, close: () => clear(name) };
  }
  throw new Error(`There are ${most} networks of tests already`);
}

/** Plugs a network namespace into the bridge, which the name of both makes findable again; its pods are reached through it. */
export function addNodeNetwork(network: Network, number: number): string {
  const name = `${network.name}-n${number}`;
  const address = network.nodeAddress(number);
  // A bridge may have gone without what belonged to it.
  removeNodeNetwork(name);
  run('ip', 'netns', 'add', name);
  run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  run('ip', 'link', 'set', name, 'master', network.name, 'up');
  run('ip', '-n', name, 'address', 'add', `${address}/24`, 'dev', 'eth0');
  for (const device of ['lo', 'eth0']) run('ip', '-n', name, 'link', 'set', device, 'up');
  run('ip', '-n', name, 'route', 'add', 'default', 'via', network.address);
  run('ip', 'route', 'replace', network.podRange(number), 'via', address);
  return name;
}

/** Takes away the network namespace, the disk and the cgroups of one node whose processes have all ended. */
export function removeNodeNetwork(name: string): void {
  // The namespace would take it along a little later.
  if (existsSync(`/sys/class/net/${name}`)) run('ip', 'link', 'delete', name);
  if (existsSync(`/run/netns/${name}`)) run('ip', 'netns', 'delete', name);
  for (const disk of disksOf(name)) run('umount', disk);
  for (const hierarchy of listHierarchies()) removeGroups(join(hierarchy, name));
}

/** The roots of the cgroups of this machine: one, or one a controller. */
export function listHierarchies(): string[] {
  const root = '/sys/fs/cgroup';
  if (existsSync(join(root, 'cgroup.controllers'))) return [root];
  return [...new Set(readdirSync(root))]
    .map((name) => join(root, name))
    .filter((path) => existsSync(join(path, 'cgroup.procs')));
}

/** Runs a program of the system, and throws what it complains of. */
export function run(program: string, ...words: string[]): string {
  return execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Mount points of this source. */
function disksOf(name: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  return mounts.flatMap(([source, place = '']) => (source === name ? [place] : []));
}

function succeeds(program: string, ...words: string[]): boolean {
  try {
    run(program, ...words);
    return true;
  } catch {
    // The caller asks only whether.
    return false;
  }
}

/** Returns true for a bridge of a test that no longer runs. */
function isAbandoned(name: string): boolean {
  if (!new RegExp(`^${prefix}\\d+$`).test(name)) return false;
  const owner = readFileSync(`/sys/class/net/${name}/ifalias`, 'utf8').trim();
  return owner !== '' && !existsSync(`/proc/${owner}`);
}

function clear(bridge: string): void {
  const places = ['/run/netns', '/sys/class/net', ...listHierarchies()].filter((place) => existsSync(place));
  const names = places.flatMap((place) => readdirSync(place)).filter((name) => name.startsWith(`${bridge}-`));
  for (const name of new Set(names)) removeNodeNetwork(name);
  run('ip', 'link', 'delete', bridge);
}

/** A cgroup can be removed when it has neither processes nor cgroups within. */
function removeGroups(path: string): void {
  if (!existsSync(path)) return;
  for (const name of readdirSync(path)) if (statSync(join(path, name)).isDirectory()) removeGroups(join(path, name));
  rmdirSync(path);
}
