import { join, resolve } from 'node:path';
import { makeClock } from '../base/clock.ts';
import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Connection, connect } from './redis/connection.ts';
import { checkDurability } from './redis/durability.ts';
import { pingServer } from './redis/redis-process.ts';
import { prepareSchema } from './schema.ts';
import type { RecordStore } from './script.ts';

export interface OpenStore {
  readonly store: RecordStore;
  /** True when a crash of Redis may lose its last changes. */
  readonly isRelaxed: boolean;
  readonly close: () => Promise<void>;
}

type StoreSettings = Pick<Config, 'redisUrl' | 'data' | 'durability' | 'clockFile'>;

/** Opens the record for reading and writing; refuses when there is none, or when it would not keep what is written. */
export async function openStore(config: StoreSettings, log: Log, observe?: RecordStore['observe']): Promise<OpenStore> {
  const url = await findRecord(config);
  if (url === null) throw refuse('unavailable', noRecord(config));
  const connection = await connect(url, { log });
  const clock = makeClock(config.clockFile ?? undefined);
  const close = async () => {
    clock.close();
    await connection.close();
  };
  try {
    const { relaxed, findings } = await checkDurability(connection, config.durability);
    if (relaxed) log.warn('redis may lose changes', { findings });
    const store: RecordStore = { connection, clock, ...(observe ? { observe } : {}) };
    await prepareSchema(store);
    return { store, isRelaxed: relaxed, close };
  } catch (error) {
    await close();
    // A plain error here is a sentence for the operator, such as one about settings of Redis.
    throw error instanceof Error && error.constructor === Error ? refuse('unavailable', error.message) : error;
  }
}

/** URL of the record: the Redis of TRAWL_REDIS_URL, else that of a running `trawl up`; `null` when none runs. */
export async function findRecord({ redisUrl, data }: Pick<StoreSettings, 'redisUrl' | 'data'>): Promise<string | null> {
  if (redisUrl !== null) return redisUrl;
  const socket = join(recordFolder(data), 'redis.sock');
  if ((await pingServer(socket)) === 'absent') return null;
  return `unix://${socket.split('/').map(encodeURIComponent).join('/')}`;
}

export function noRecord({ data }: Pick<StoreSettings, 'data'>): string {
  return `No record found: TRAWL_REDIS_URL is not set, and no trawl up runs in ${resolve(data)} (TRAWL_DATA)`;
}

/** The folder of the redis-server that `trawl up` starts. */
export function recordFolder(data: string): string {
  return join(resolve(data), 'redis');
}

/** The clock of Redis, in milliseconds, without the offset of a rehearsal. */
export async function readClock(connection: Connection): Promise<number> {
  const [seconds, microseconds] = (await connection.read(['TIME'])) as [string, string];
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}
