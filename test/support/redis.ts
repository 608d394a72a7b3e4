import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeLog } from '../../src/base/log.ts';
import { type Connection, connect } from '../../src/store/redis/connection.ts';
import { type RedisServer, type ServerOptions, startRedis } from '../../src/store/redis/embedded-server.ts';
import { askOnce } from '../../src/store/redis/redis-client.ts';
import { type RedisProcess, spawnRedis } from '../../src/store/redis/redis-process.ts';
import { freePorts } from './free-port.ts';
import { until } from './until.ts';

/** The part that every kind of Redis under test has. */
export interface TestRecord {
  readonly connection: Connection;
  readonly url: string;
  /** Removes every key of the record. */
  readonly flush: () => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

export interface TestRedis extends TestRecord {
  readonly server: RedisServer;
  readonly pid: () => number;
}

/** One redis-server of several, on a port of the loopback address. */
export interface TestNode {
  readonly port: number;
  readonly url: string;
  readonly process: RedisProcess;
  readonly ask: (...command: string[]) => Promise<unknown>;
}

export interface TestCluster extends TestRecord {
  /** Three masters, of which the last has the record, and then its replicas. */
  readonly nodes: readonly TestNode[];
}

export interface TestPair extends TestRecord {
  readonly master: TestNode;
  readonly replica: TestNode;
}

export type TestSentinel = TestPair;

export const durable = [
  '--save',
  '',
  '--appendonly',
  'yes',
  '--appendfsync',
  'always',
  '--maxmemory-policy',
  'noeviction',
];
type Connecting = Pick<Parameters<typeof connect>[1], 'patience'>;
const password = 'only-for-tests';
/** A server that has just been started answers late while other programs use the processors. */
export const maxOpenMs = 30_000;
/** Options of a connection for a test that asks what is true, and not how fast: a busy machine may need longer than the 1.5 s of an API. */
export const patient: Connecting = { patience: { timeoutMs: maxOpenMs, onSlow: () => {} } };
const slotRanges = [
  ['0', '5460'],
  ['5461', '10922'],
  ['10923', '16383'],
];

/** Folder whose files are kept in memory, where there is one: a write there never waits for a busy disk. */
export const memoryFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** A new folder under the temporary one, or another. */
export function aFolder(under = tmpdir()): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(under, 'trawl-test-'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** A log that keeps its lines. */
export function aLog() {
  const lines: string[] = [];
  return { lines, log: makeLog({ level: 'debug', write: (line) => lines.push(line), now: Date.now }) };
}

/**
 * Starts a redis-server of its own in a new folder, whose files are kept in memory unless another place is named. What it
 * has written outlives its death, and a disk that is busy for seconds, as while images are built, makes no call of a test late.
 */
export async function startTestRedis(
  options: Partial<ServerOptions> = {},
  under: string = memoryFolder,
  connecting: Connecting = patient,
): Promise<TestRedis> {
  const { folder, remove } = aFolder(under);
  const { log } = aLog();
  const server = await startRedis({ folder, log, maxDelayMs: 100, fsync: 'no', ...options });
  const end = async () => {
    await server.stop();
    remove();
  };
  return { server, pid: server.pid, ...(await offer(server.url, end, connecting)) };
}

/** Starts a Cluster. */
export async function startTestCluster({ replicas = 0, fsync = 'always' } = {}): Promise<TestCluster> {
  const { folder, remove } = aFolder(memoryFolder);
  const ports = await freePorts(2 * (3 + replicas));
  const buses = ports.splice(3 + replicas).map(String);
  const options = [
    ...durable,
    '--cluster-enabled',
    'yes',
    '--cluster-node-timeout',
    '1000',
    '--cluster-require-full-coverage',
    'no',
    '--appendfsync',
    fsync,
  ];
  const start = (port: number, n: number) => startNode(folder, port, [...options, '--cluster-port', buses[n]!]);
  const nodes = await Promise.all(ports.map(start));
  for (const [n, { ask }] of nodes.entries()) {
    await ask('CLUSTER', 'SET-CONFIG-EPOCH', String(n + 1));
    const range = slotRanges[n];
    if (range) await ask('CLUSTER', 'ADDSLOTSRANGE', ...range);
    if (n > 0) await ask('CLUSTER', 'MEET', '127.0.0.1', String(ports[0]), buses[0]!);
  }
  const known = `cluster_known_nodes:${nodes.length}`;
  for (const node of nodes) await says(node, ['CLUSTER', 'INFO'], known);
  const owner = String(await nodes[2]!.ask('CLUSTER', 'MYID'));
  for (const replica of nodes.slice(3)) {
    await replica.ask('CLUSTER', 'REPLICATE', owner);
    await says(replica, ['INFO', 'replication'], 'master_link_status:up');
    for (const node of nodes) await says(node, ['CLUSTER', 'NODES'], `slave ${owner}`);
  }
  for (const node of nodes) await says(node, ['CLUSTER', 'INFO'], 'cluster_state:ok');
  const url = nodes.map((node) => node.url).join(',');
  return { nodes, ...(await offer(url, () => endAll(nodes, remove))) };
}

/**
 * Starts a redis-server at a port, as other machines would reach it. Its files are in memory: images and nodes of tests keep the
 * disk busy for longer than a call may wait.
 */
export async function startTestServer(): Promise<TestRecord> {
  const { folder, remove } = aFolder(memoryFolder);
  const [port = 0] = await freePorts(1);
  const node = await startNode(folder, port, durable);
  return offer(node.url, () => endAll([node], remove));
}

/** Starts a master with a replica, which follows it at the port that `lead` returns for that of the master. */
export async function startTestPair(lead?: (masterPort: number) => Promise<number>): Promise<TestPair> {
  const { folder, remove } = aFolder(memoryFolder);
  const ports = await freePorts(2);
  const [master, replica] = await startPair(folder, ports, durable, '', lead);
  return { master, replica, ...(await offer(master.url, () => endAll([master, replica], remove))) };
}

async function startPair(
  folder: string,
  ports: number[],
  options: string[],
  secret: string,
  lead = async (masterPort: number) => masterPort,
) {
  const [masterPort = 0, replicaPort = 0] = ports;
  const master = await startNode(folder, masterPort, [...options, '--min-replicas-to-write', '1'], { secret });
  const following = [...options, '--replicaof', '127.0.0.1', String(await lead(masterPort))];
  const replica = await startNode(folder, replicaPort, following, { secret });
  await says(replica, ['INFO', 'replication'], 'master_link_status:up');
  // The master refuses writes until it counts the replica.
  await says(master, ['INFO', 'replication'], 'min_slaves_good_slaves:1');
  return [master, replica] as const;
}

/** Starts a master with a replica, watched by one Sentinel; all three want a password. */
export async function startTestSentinel(): Promise<TestSentinel> {
  const { folder, remove } = aFolder(memoryFolder);
  const [port = 0, ...ports] = await freePorts(3);
  const options = [...durable, '--requirepass', password, '--masterauth', password];
  const [master, replica] = await startPair(folder, ports, options, password);
  const watch = [
    `requirepass ${password}`,
    `sentinel monitor trawl 127.0.0.1 ${master.port} 1`,
    `sentinel auth-pass trawl ${password}`,
    // A primary that waits for a processor is not lost.
    'sentinel down-after-milliseconds trawl 2000',
    'sentinel failover-timeout trawl 3000',
  ];
  await writeFile(join(folder, 'sentinel.conf'), watch.join('\n'));
  const sentinel = await startNode(folder, port, ['../sentinel.conf', '--sentinel'], { secret: password });
  await says(sentinel, ['INFO', 'sentinel'], 'slaves=1');
  const url = `redis+sentinel://:${password}@127.0.0.1:${port}/trawl`;
  return { master, replica, ...(await offer(url, () => endAll([sentinel, master, replica], remove))) };
}

async function offer(url: string, end: () => unknown, connecting: Connecting = {}): Promise<TestRecord> {
  const connection = await connect(url, { log: aLog().log, openMs: maxOpenMs, ...connecting });
  const stop = async () => {
    await connection.close();
    await end();
  };
  return { connection, url, flush: () => connection.send(['FLUSHALL']), stop };
}

/** Starts a redis-server with a password, or none, at this port of an address. */
export async function startNode(
  parent: string,
  port: number,
  options: string[],
  { secret = '', address = '127.0.0.1' } = {},
): Promise<TestNode> {
  const folder = join(parent, String(port));
  await mkdir(folder);
  const process = spawnRedis(folder, [
    ...options,
    ...['--port', String(port), '--bind', address, '--logfile', 'redis.log', '--repl-diskless-sync-delay', '0'],
  ]);
  const url = `redis://${secret && `:${secret}@`}${address}:${port}`;
  const node = { port, url, process, ask: (...command: string[]) => askOnce(url, command) };
  await says(node, ['PING'], 'PONG');
  return node;
}

async function endAll(nodes: readonly TestNode[], remove: () => void): Promise<void> {
  await Promise.all(nodes.map((node) => node.process.stop()));
  remove();
}

/** Waits until the answer to a command contains some words; an error is an answer that does not. */
export async function says(node: TestNode, command: string[], words: string): Promise<void> {
  const ask = () => node.ask(...command).then(String, () => '');
  await until(async () => (await ask()).includes(words), 15, `${words} on port ${node.port}`);
}
