import { writeSync } from 'node:fs';
import { makeLog } from '../../src/base/log.ts';
import { makeSeal } from '../../src/base/seal.ts';
import { makeSampleAccount } from '../../src/roles/sample-account.ts';
import { type Connection, connect } from '../../src/store/redis/connection.ts';
import { storeOf } from './record.ts';
import { patient } from './redis.ts';

// Makes the sample account of a first start and prints its key; kills itself in place of its nth command to Redis, or when
// it is about to take back what it had written down.
const [url = '', folder = '', commands = ''] = process.argv.slice(2);
let left = Number(commands);
const connection = await connect(url, {
  ...patient,
  log: makeLog({ level: 'error', write: console.error, now: Date.now }),
});
const die = () => process.kill(process.pid, 'SIGKILL');
const count = <Args extends unknown[], T>(send: (...args: Args) => Promise<T>) => {
  return (...args: Args): Promise<T> => {
    if (left-- === 0) die();
    return send(...args);
  };
};
const counting: Connection = { ...connection, eval: count(connection.eval), read: count(connection.read) };
await makeSampleAccount(storeOf(counting), makeSeal({ secret: Buffer.alloc(32, 1) }), folder, (key) => {
  writeSync(1, `${key}\n`);
  if (left-- === 0) die();
});
await connection.close();
