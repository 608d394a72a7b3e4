import { writeSync } from 'node:fs';
import { startRedis } from '../../src/store/redis/embedded-server.ts';
import { spawnRedis } from '../../src/store/redis/redis-process.ts';
import { aLog } from './redis.ts';

// A process that starts a redis-server in a folder, tells its pid and waits; with `at-once` it kills itself right after the
// start, in which it finds programs in a folder of tests first.
const [folder = '', when, programs] = process.argv.slice(2);
if (when === 'at-once') {
  process.env.PATH = `${programs}:${process.env.PATH}`;
  writeSync(1, `${spawnRedis(folder, ['--port', '0', '--unixsocket', 'redis.sock', '--save', '']).pid}\n`);
  process.kill(process.pid, 'SIGKILL');
} else {
  const server = await startRedis({ folder, log: aLog().log });
  writeSync(1, `${server.pid()}\n`);
}
