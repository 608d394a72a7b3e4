import { tmpdir } from 'node:os';
import type { ServerOptions } from '../../src/store/redis/embedded-server.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { anAccount } from '../support/record.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

const plenty = 100_000_000;

/** Starts a Redis that waits for the disk, as the one of an operator does. */
export function startBenchRedis(options: Partial<ServerOptions> = {}): Promise<TestRedis> {
  return startTestRedis({ fsync: 'always', ...options }, tmpdir());
}

/** Runs something with a Redis of its own. */
export async function withRedis<T>(options: Partial<ServerOptions>, use: (redis: TestRedis) => Promise<T>): Promise<T> {
  const redis = await startBenchRedis(options);
  try {
    // A file that is rewritten in the background would cost whoever is measured at that moment.
    await redis.connection.send(['CONFIG', 'SET', 'auto-aof-rewrite-percentage', '0']);
    return await use(redis);
  } finally {
    await redis.stop();
  }
}

/** An account with a plan, rate limits and a key like any other, that never reaches a limit. */
export function aBusyAccount(store: RecordStore) {
  return anAccount(store, { quota: 10, credits: plenty, max_open: plenty, perSecond: plenty, perMinute: plenty });
}
