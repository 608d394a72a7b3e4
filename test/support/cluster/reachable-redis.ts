import { startTestServer } from '../redis.ts';
import type { ReachableRedis } from './chart-ground.ts';
import { startTcpProxy } from './tcp-proxy.ts';

/** Starts a Redis that pods reach at this address of the machine. */
export function openReachableRedis(address: string): Promise<ReachableRedis> {
  return open(address);
}

/**
 * Starts a Redis with `appendfsync no`, which only a release with `redis.durability=relaxed` accepts: the tests survive no power
 * failure, and a busy disk does not delay them.
 */
export function openRelaxedRedis(address: string): Promise<ReachableRedis> {
  return open(address, 'no');
}

async function open(address: string, fsync?: 'no'): Promise<ReachableRedis> {
  const redis = await startTestServer();
  // The doctor wants a limit.
  await redis.connection.send(['CONFIG', 'SET', 'maxmemory', '256mb']);
  if (fsync !== undefined) await redis.connection.send(['CONFIG', 'SET', 'appendfsync', fsync]);
  const proxy = await startTcpProxy(redis.url, address);
  const port = Number(new URL(proxy.url).port);
  const url = redis.url.replace(new URL(redis.url).host, `${address}:${port}`);
  const stop = async () => {
    await proxy.stop();
    await redis.stop();
  };
  return { url, peers: [{ cidr: `${address}/32`, port }], stop };
}
