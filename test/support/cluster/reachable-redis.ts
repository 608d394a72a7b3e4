import { startTestServer, type TestRecord } from '../redis.ts';
import type { ReachableRedis } from './chart-ground.ts';
import { startTcpProxy } from './tcp-proxy.ts';

type MakeLogin = (redis: TestRecord) => Promise<string>;

/** Starts a Redis that pods reach at this address of the machine. */
export function openReachableRedis(address: string): Promise<ReachableRedis> {
  return open(address);
}

/**
 * Starts a Redis with `appendfsync no`, which only a release with `redis.durability=relaxed` accepts: the tests survive no power
 * failure, and a busy disk does not delay them. `makeLogin` may give its URL a user and a password.
 */
export function openRelaxedRedis(address: string, makeLogin?: MakeLogin): Promise<ReachableRedis> {
  return open(address, 'no', makeLogin);
}

async function open(address: string, fsync?: 'no', makeLogin: MakeLogin = async ({ url }) => url) {
  const redis = await startTestServer();
  // The doctor wants a limit.
  await redis.connection.send(['CONFIG', 'SET', 'maxmemory', '256mb']);
  if (fsync !== undefined) await redis.connection.send(['CONFIG', 'SET', 'appendfsync', fsync]);
  const proxy = await startTcpProxy(redis.url, address);
  const port = Number(new URL(proxy.url).port);
  const url = (await makeLogin(redis)).replace(new URL(redis.url).host, `${address}:${port}`);
  const stop = async () => {
    await proxy.stop();
    await redis.stop();
  };
  return { url, peers: [{ cidr: `${address}/32`, port }], stop };
}
