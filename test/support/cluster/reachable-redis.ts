import { startTestServer, type TestRecord } from '../redis.ts';
import type { ReachableRedis } from './chart-ground.ts';
import { startTcpProxy } from './tcp-proxy.ts';

/** Starts a Redis that pods reach at this address of the machine. */
export function openReachableRedis(address: string): Promise<ReachableRedis> {
  return open(address, async ({ url }) => url);
}

/**
 * Starts one that a release with `redis.durability=relaxed` takes, with the login that `makeLogin` gives to its URL. What is tested
 * outlives no power failure: a busy disk would only delay it.
 */
export function openRelaxedRedis(
  address: string,
  makeLogin = async ({ url }: TestRecord) => url,
): Promise<ReachableRedis> {
  return open(address, async (redis) => {
    await redis.connection.send(['CONFIG', 'SET', 'appendfsync', 'no']);
    return makeLogin(redis);
  });
}

async function open(address: string, makeLogin: (redis: TestRecord) => Promise<string>): Promise<ReachableRedis> {
  const redis = await startTestServer();
  // The doctor wants a limit.
  await redis.connection.send(['CONFIG', 'SET', 'maxmemory', '256mb']);
  const proxy = await startTcpProxy(redis.url, address);
  const port = Number(new URL(proxy.url).port);
  const url = (await makeLogin(redis)).replace(new URL(redis.url).host, `${address}:${port}`);
  const stop = async () => {
    await proxy.stop();
    await redis.stop();
  };
  return { url, peers: [{ cidr: `${address}/32`, port }], stop };
}
