import type { Log } from '../base/log.ts';
import type { Network } from '../base/settings/kinds.ts';
import { coalesceRuns } from '../base/single-flight.ts';
import {
  type IpAddress,
  type IpRange,
  isInRange,
  isPrivateAddress,
  networkOf,
  readAddress,
  readRange,
} from '../model/public-address.ts';
import { type BlockRule, countAuthFailure } from '../store/access/count-auth-failure.ts';
import { listBlocks } from '../store/access/list-blocks.ts';
import { channels } from '../store/keys.ts';
import type { RecordStore } from '../store/script.ts';

/** The address of a caller, as far as the network tells it. */
export interface CallerAddress {
  /** For the request log; '' when the connection has none. */
  readonly ip: string;
  /** Counter of failed authentications: the address or its IPv6 /64; `null` for a proxy, which is never blocked. */
  readonly blame: string | null;
}

export type FindCaller = (remote: string | undefined, forwarded: string | undefined) => CallerAddress;

/** The blocked addresses, cached: a check asks Redis nothing. */
export type BlockedAddresses = Awaited<ReturnType<typeof cacheBlocks>>;

const refreshMs = 10_000;
/**
 * Returns a function that finds the caller behind the operator's trusted proxies: the last address of X-Forwarded-For that no
 * trusted proxy has. `reportStrayProxy` is called for the first private peer that forwards without being trusted (D38).
 */
export function findCallers(trusted: readonly Network[], reportStrayProxy: (address: string) => void): FindCaller {
  let isReported = false;
  const proxies = trusted.map(readRange);
  return (remote = '', forwarded) => {
    const peer = readAddress(withoutZone(remote));
    if (peer === null) return { ip: '', blame: null };
    if (isTrusted(proxies, peer)) {
      const client = forwarded === undefined ? null : lastUntrusted(proxies, forwarded);
      return client === null ? { ip: peer.toString(), blame: null } : callerAt(client);
    }
    if (forwarded === undefined || !isPrivateAddress(peer)) return callerAt(peer);
    const ip = peer.toString();
    if (!isReported) reportStrayProxy(ip);
    isReported = true;
    return { ip, blame: null };
  };
}

/** Caches the blocked addresses; reads them again at each change, and every 10 s in case a message was lost. */
export async function cacheBlocks(store: RecordStore, rule: BlockRule, log: Log) {
  let blockedUntil = new Map<string, number>();
  // A read of thousands of addresses is not begun again for each block of a burst.
  const { run: refresh } = coalesceRuns(async () => {
    try {
      blockedUntil = new Map((await listBlocks(store)).map(({ address, until }) => [address, until]));
    } catch (error) {
      log.debug('the blocked addresses could not be read', { error });
    }
  });
  await refresh();
  const unsubscribe = await store.connection.subscribe(channels.blocks, () => void refresh());
  const timer = setInterval(() => void refresh(), refreshMs);
  timer.unref();
  return {
    /** Returns the seconds until the block of an address ends; `null` when it is not blocked. */
    waitSeconds(address: string): number | null {
      const leftMs = (blockedUntil.get(address) ?? 0) - store.clock.now();
      return leftMs > 0 ? Math.ceil(leftMs / 1000) : null;
    },
    /** Counts a failed authentication in Redis, for all replicas; returns how many the window has. */
    async countFailure(address: string): Promise<number> {
      const { failures, until } = await countAuthFailure(store, address, rule);
      if (until !== null) blockedUntil.set(address, until);
      return failures;
    },
    async close(): Promise<void> {
      clearInterval(timer);
      await unsubscribe();
    },
  };
}

function callerAt(address: IpAddress): CallerAddress {
  return { ip: address.toString(), blame: networkOf(address) };
}

function isTrusted(proxies: readonly IpRange[], address: IpAddress): boolean {
  return proxies.some((range) => isInRange(range, address));
}

/** Returns the last address that no trusted proxy has; `null` when all are theirs, or one behind it cannot be read. */
function lastUntrusted(proxies: readonly IpRange[], forwarded: string): IpAddress | null {
  for (const entry of forwarded.split(',').reverse()) {
    const address = readEntry(entry.trim());
    if (address === null || !isTrusted(proxies, address)) return address;
  }
  return null;
}

/** Reads an address that may have brackets, a port and a zone. */
function readEntry(text: string): IpAddress | null {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return readAddress(withoutZone(bare));
}

/** A peer on one link has a zone behind its address: fe80::1%eth0. */
function withoutZone(address: string): string {
  const end = address.indexOf('%');
  return end < 0 ? address : address.slice(0, end);
}
