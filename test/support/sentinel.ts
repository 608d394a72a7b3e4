import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from './free-port.ts';
import { aFolder, durable, memoryFolder, says, startNode, type TestNode } from './redis.ts';

/** A primary with two replicas, watched by three Sentinels, at an address that other machines reach. */
export interface Sentinels {
  readonly url: string;
  readonly ports: readonly number[];
  /** Kills the server that Sentinels call the primary, as a lost machine would. */
  readonly killPrimary: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const password = 'only-for-tests';
const most = { replicas: 2, sentinels: 3, quorum: 2 };

export async function startSentinels(address: string, downAfterMs: number): Promise<Sentinels> {
  const { folder, remove } = aFolder(memoryFolder);
  const ports = await freePorts(1 + most.replicas + most.sentinels, address);
  const kept = [...durable, '--min-replicas-to-write', '1', '--requirepass', password, '--masterauth', password];
  const [first = 0] = ports;
  const servers: TestNode[] = [await startNode(folder, first, kept, { secret: password, address })];
  for (const port of ports.slice(1, 1 + most.replicas)) {
    const following = [...kept, '--replicaof', address, String(first)];
    const replica = await startNode(folder, port, following, { secret: password, address });
    await says(replica, ['INFO', 'replication'], 'master_link_status:up');
    servers.push(replica);
  }
  const sentinels: TestNode[] = [];
  for (const port of ports.slice(servers.length)) {
    const file = `sentinel-${port}.conf`;
    await writeFile(join(folder, file), watch(address, first, downAfterMs));
    sentinels.push(await startNode(folder, port, [`../${file}`, '--sentinel'], { secret: password, address }));
  }
  for (const sentinel of sentinels) await says(sentinel, ['INFO', 'sentinel'], 'slaves=2,sentinels=3');
  const hosts = sentinels.map(({ port }) => `${address}:${port}`);
  return {
    ports,
    url: `redis+sentinel://:${password}@${hosts.join(',')}/trawl`,
    killPrimary: async () => {
      const answer = await sentinels[0]?.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'trawl');
      const [, port] = (answer ?? []) as string[];
      const primary = servers.find((server) => server.port === Number(port));
      if (primary === undefined) throw new Error(`no server has the port ${port}`);
      process.kill(primary.process.pid, 'SIGKILL');
      await primary.process.ended;
    },
    stop: async () => {
      await Promise.all([...sentinels, ...servers].map((node) => node.process.stop()));
      remove();
    },
  };
}

function watch(address: string, port: number, downAfterMs: number): string {
  return [
    `requirepass ${password}`,
    `sentinel monitor trawl ${address} ${port} ${most.quorum}`,
    `sentinel auth-pass trawl ${password}`,
    `sentinel sentinel-pass ${password}`,
    `sentinel down-after-milliseconds trawl ${downAfterMs}`,
    'sentinel failover-timeout trawl 10000',
  ].join('\n');
}
