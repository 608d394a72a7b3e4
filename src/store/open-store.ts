import { join, resolve } from 'node:path';
import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Patience } from './redis/call-sender.ts';
import { connect } from './redis/connection.ts';
import { checkDurability } from './redis/durability.ts';
import type { ObserveReplicas } from './redis/durability-watch.ts';
import { findServer, startRedis } from './redis/embedded-server.ts';
import { makeClock } from './redis/redis-time.ts';
import { holdRelease } from './release-lease.ts';
import type { RecordStore } from './script.ts';

interface OpenStore {
  readonly store: RecordStore;
  readonly close: () => Promise<void>;
}

interface StoreOptions {
  readonly durations?: RecordStore['durations'];
  readonly observeLapse?: RecordStore['observeLapse'];
  readonly observeReplicas?: ObserveReplicas;
  /** Of a command that would rather wait than fail. */
  readonly patience?: Patience;
  /** Longest wait for the first connection to a Redis that is late. */
  readonly openMs?: number;
}

type StoreSettings = Pick<Config, 'redisUrl' | 'data' | 'durability' | 'clockFile'>;

/** Opens the record for reading and writing; refuses when there is none, or when it would not keep what is written. */
export async function openStore(config: StoreSettings, log: Log, options: StoreOptions = {}): Promise<OpenStore> {
  const url = await findRecord(config);
  if (url === null) throw refuse('unavailable', noRecord(config));
  return open(url, config, log, options, true);
}

/**
 * Opens the record of a service that is stopped, whatever its layout, to replace it; without TRAWL_REDIS_URL the redis-server of
 * `trawl up` runs until it is closed. Refuses while a `trawl up` runs.
 */
export async function openStopped(config: StoreSettings, log: Log, options: StoreOptions = {}): Promise<OpenStore> {
  const { redisUrl, data } = config;
  if (redisUrl !== null) return open(redisUrl, config, log, options);
  const folder = recordFolder(data);
  if ((await findServer(folder)) !== null) {
    throw refuse('in_use', `A trawl up runs in ${resolve(data)} (TRAWL_DATA): stop it first`);
  }
  const server = await startRedis({ folder, log }).catch((error: unknown) => {
    throw refuseBy(error);
  });
  try {
    const { store, close } = await open(server.url, config, log, options);
    return { store, close: () => close().finally(server.stop) };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function open(
  url: string,
  config: StoreSettings,
  log: Log,
  { observeReplicas, patience, openMs, ...observers }: StoreOptions,
  isUsed = false,
): Promise<OpenStore> {
  const connection = await connect(() => config.redisUrl ?? url, { log, observeReplicas, patience, openMs });
  const warn = () => log.warn('TRAWL_CLOCK_FILE holds no number of seconds: the clock stays as it was');
  const clock = makeClock(connection.clock, config.clockFile ?? undefined, warn);
  const close = async () => {
    clock.close();
    await connection.close();
  };
  try {
    const findings = await checkDurability(connection, config.durability);
    if (findings.length > 0) log.warn('redis may lose changes', { findings });
    const store: RecordStore = { connection, clock, ...observers };
    if (!isUsed) return { store, close };
    const release = await holdRelease(store, log);
    const end = async () => {
      await release.close();
      await close();
    };
    return { store: { ...store, release }, close: end };
  } catch (error) {
    await close();
    throw refuseBy(error);
  }
}

/** A plain error is a sentence for the operator, such as one about settings of Redis. */
function refuseBy(error: unknown): unknown {
  return error instanceof Error && error.constructor === Error ? refuse('unavailable', error.message) : error;
}

/** URL of the record: the Redis of TRAWL_REDIS_URL, else that of a running `trawl up`; `null` when none runs. */
export async function findRecord({ redisUrl, data }: Pick<StoreSettings, 'redisUrl' | 'data'>): Promise<string | null> {
  return redisUrl ?? findServer(recordFolder(data));
}

export function noRecord({ data }: Pick<StoreSettings, 'data'>): string {
  return `No record found: TRAWL_REDIS_URL is not set, and no trawl up runs in ${resolve(data)} (TRAWL_DATA)`;
}

/** The folder of the redis-server that `trawl up` starts. */
export function recordFolder(data: string): string {
  return join(resolve(data), 'redis');
}
