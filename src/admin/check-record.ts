import { BlockList, isIPv6 } from 'node:net';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import { readStrayProxy } from '../store/access/stray-proxy.ts';
import { findRecord, noRecord, readClock } from '../store/open-store.ts';
import { type Connection, connect } from '../store/redis/connection.ts';
import { checkDurability, memoryRatio } from '../store/redis/durability.ts';
import { fullRatio } from '../store/redis/memory-gate.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

type Rules = Pick<Config, 'durability' | 'trustedProxies'>;

const maxDifferenceMs = 2_000;

/** Checks the Redis of the record; changes nothing in it. */
export async function checkRecord(config: Pick<Config, 'redisUrl' | 'data'> & Rules, log: Log): Promise<Finding[]> {
  const url = await findRecord(config);
  if (url === null) return [{ level: 'note', about: 'record', text: `${noRecord(config)}.` }];
  try {
    const connection = await connect(url, { log });
    try {
      return await checkConnection(connection, config);
    } finally {
      await connection.close();
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return [{ level: 'problem', about: 'record', text: `${text}.` }];
  }
}

/** Checks durability, clock, memory and proxies through a connection. */
export async function checkConnection(connection: Connection, config: Rules): Promise<Finding[]> {
  return [
    await checkRecordDurability(connection, config.durability),
    await checkTime(connection),
    checkMemory(await memoryRatio(connection)),
    checkStrayProxy(await readStrayProxy(connection), config.trustedProxies),
  ];
}

/** Checks that the last private address which forwarded requests (`null` for none) is a trusted proxy (D38). */
export function checkStrayProxy(address: string | null, trusted: Config['trustedProxies']): Finding {
  const about = 'proxies';
  if (address === null || isTrusted(address, trusted)) return { level: 'ok', about, text: 'No proxy is unknown.' };
  const text = `A proxy at ${address} forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: nobody behind it is ever blocked.`;
  return { level: 'note', about, text };
}

/** Checks that the clock of Redis is at most 2 s from ours, which was read before and after it. */
export function checkClockDifference(before: number, redis: number, after: number): Finding {
  const apartMs = Math.max(0, redis - after, before - redis);
  const text = `The clock of Redis is ${(apartMs / 1000).toFixed(1)} s from ours; up to ${maxDifferenceMs / 1000} s are well.`;
  return findingOf(apartMs <= maxDifferenceMs, 'clock', text);
}

/** Checks that Redis uses less than 85 % of its memory limit; a ratio of 0 means no limit. */
export function checkMemory(ratio: number): Finding {
  if (ratio === 0) return { level: 'ok', about: 'memory', text: 'Redis has no memory limit of its own.' };
  const text = `Redis uses ${Math.round(ratio * 100)} % of its memory; from ${fullRatio * 100} % on new jobs are refused.`;
  return findingOf(ratio < fullRatio, 'memory', text);
}

async function checkRecordDurability(connection: Connection, mode: Config['durability']): Promise<Finding> {
  const { findings } = await checkDurability(connection, 'relaxed');
  const well = 'Redis writes every change to disk before it answers.';
  const text = findings.length === 0 ? well : `Redis may lose charges: ${findings.join('; ')}.`;
  return findingOf(findings.length === 0, 'durability', text, mode === 'strict' ? 'problem' : 'note');
}

async function checkTime(connection: Connection): Promise<Finding> {
  const before = Date.now();
  const redis = await readClock(connection);
  return checkClockDifference(before, redis, Date.now());
}

function isTrusted(proxy: string, trusted: Config['trustedProxies']): boolean {
  const list = new BlockList();
  for (const { address, prefix, family } of trusted) list.addSubnet(address, prefix, family);
  return list.check(proxy, isIPv6(proxy) ? 'ipv6' : 'ipv4');
}
