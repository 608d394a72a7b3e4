import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FakedClock } from './faked-clock.ts';
import { startTestServer, type TestRecord } from './redis.ts';

/** Starts a redis-server with a clock of its own: a wrapper in this folder, which is found first in PATH meanwhile. */
export async function startFakedRedis(folder: string, clock: FakedClock | undefined): Promise<TestRecord> {
  const [path = '', wrapper] = [process.env.PATH, join(folder, 'redis-server')];
  const settings = Object.entries(clock?.env ?? {}).map(([name, value]) => `${name}='${value}'`);
  writeFileSync(wrapper, `#!/bin/sh\nPATH='${path}' exec env ${settings.join(' ')} redis-server "$@"\n`);
  chmodSync(wrapper, 0o755);
  process.env.PATH = `${folder}:${path}`;
  return startTestServer().finally(() => {
    process.env.PATH = path;
  });
}
