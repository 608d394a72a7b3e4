import { lstat, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { maxClientConnections } from '../base/resource-limits.ts';
import type { ServerAddress } from '../base/server-address.ts';
import type { CertificateFiles } from '../base/server-certificate.ts';
import { maxDurationSeconds } from '../model/request-limits.ts';
import { makePolicy } from './address-policy.ts';
import { makeConnector } from './connector.ts';
import { makeProxy, type ProxyLimits } from './proxy.ts';
import { makeResolve } from './resolver.ts';

export const egressPort = 4750;

const dnsSeconds = 5;
const connectSeconds = 9;
/** Longest path of a UNIX socket (sun_path holds 108 bytes with the final zero). */
const maxPathBytes = 107;

export async function openEgress(options: {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly certificate: CertificateFiles | null;
}) {
  const { config, ...others } = options;
  const proxy = makeProxy({ connect: await openConnector(config), limits: limitsOf(config), ...others });
  return {
    listen: async (address: ServerAddress) => {
      if ('path' in address) await clearPath(address.path);
      return proxy.listen(address);
    },
    close: proxy.close,
  };
}

/** Returns the socket of an absolute path, or the port of the given host; nothing for any other text. */
export function readListenAddress(text: string, host: string): ServerAddress | undefined {
  if (text.startsWith('/')) return Buffer.byteLength(text) <= maxPathBytes ? { path: text } : undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 65_536;
  return port <= 65_535 ? { host, port } : undefined;
}

async function openConnector({ egressPorts, egressAllow, egressDeny, dnsServers }: Config) {
  const policy = makePolicy({ ports: egressPorts, allow: egressAllow, deny: egressDeny, ownAddresses });
  const resolve = await makeResolve({ servers: dnsServers, limitSeconds: dnsSeconds, ownAddresses });
  return makeConnector({ policy, resolve, connectSeconds });
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

function limitsOf({ jobSeconds, maxFileBytes, webhookSeconds }: Config): ProxyLimits {
  return {
    connections: 4096,
    connectionsPerClient: maxClientConnections,
    // One tunnel may carry picture, sound and what was fetched twice.
    bytes: 2 * maxFileBytes,
    // A webhook's receiver may think as long as its sender waits.
    idleSeconds: Math.max(60, webhookSeconds + 5),
    leftSeconds: 5,
    // A recording lasts longer than other attempts (D65), and may be one connection.
    totalSeconds: jobSeconds + maxDurationSeconds,
    headerBytes: 16_384,
    headerSeconds: 10,
  };
}

/** Removes a socket that a killed process left behind. */
async function clearPath(path: string): Promise<void> {
  // Any other problem with the path shows when it is opened.
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket()) await rm(path);
}
