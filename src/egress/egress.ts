import { lstat, rm } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import type { Readable } from 'node:stream';
import type { Config } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { startProbeServer } from '../base/probe-server.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { makeShutdown } from '../base/shutdown.ts';
import { makePolicy } from './address-policy.ts';
import { makeConnector } from './connector.ts';
import { makeProxy, type ProxyLimits } from './proxy.ts';
import { makeResolve } from './resolver.ts';

type EgressConfig = Pick<
  Config,
  | 'dnsServers'
  | 'egressAllow'
  | 'egressDeny'
  | 'egressPorts'
  | 'host'
  | 'jobSeconds'
  | 'maxFileBytes'
  | 'probePort'
  | 'webhookSeconds'
>;

export interface EgressOptions {
  readonly config: EgressConfig;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Where clients come in. */
  readonly places: readonly ServerAddress[];
  /** Held open by the process that started this one: when it ends, egress ends at once. */
  readonly lifeline?: Readable;
}

/** The port of the proxy where nothing else is said. */
export const egressPort = 4750;

const dnsSeconds = 5;
const connectSeconds = 9;
const drainSeconds = 20;
/** Longest path of a UNIX socket (sun_path holds 108 bytes with the final zero). */
const maxPathBytes = 107;

/** Runs the proxy until SIGTERM or the end of its lifeline; without a lifeline SIGINT ends it too. */
export async function runEgress({ config, log, metrics, places, lifeline }: EgressOptions): Promise<void> {
  const stop = makeShutdown();
  const end = waitForEnd(lifeline);
  let ready = false;
  let drain = drainSeconds;
  try {
    const missing = () => (ready ? [] : ['proxy']);
    const probe = await startProbeServer({ port: config.probePort, host: config.host, metrics, ready: missing });
    stop.add('probe', probe.close);
    const proxy = makeProxy({ connect: await openConnector(config), limits: limitsOf(config), log, metrics });
    stop.add('proxy', () => proxy.close(drain));
    for (const place of places) {
      if ('path' in place) await clearPath(place.path);
      const port = await proxy.listen(place);
      log.info('egress listens', 'path' in place ? place : { host: place.host, port });
    }
    log.info('egress is ready', { probe: probe.port });
    ready = true;
    drain = (await end) === 'lifeline' ? 0 : drain;
    log.info('egress ends');
  } finally {
    ready = false;
    await stop.run();
    lifeline?.destroy();
  }
}

/** Reads where to listen: the absolute path of a socket, or a port of the given host. */
export function readListenAddress(text: string, host: string): ServerAddress | undefined {
  if (text.startsWith('/')) return Buffer.byteLength(text) <= maxPathBytes ? { path: text } : undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 65_536;
  return port <= 65_535 ? { host, port } : undefined;
}

async function openConnector({ egressPorts, egressAllow, egressDeny, dnsServers }: EgressConfig) {
  const policy = makePolicy({ ports: egressPorts, allow: egressAllow, deny: egressDeny, ownAddresses });
  const resolve = await makeResolve({ servers: dnsServers, limitSeconds: dnsSeconds });
  return makeConnector({ policy, resolve, connectSeconds });
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

function limitsOf({ jobSeconds, maxFileBytes, webhookSeconds }: EgressConfig): ProxyLimits {
  return {
    connections: 4096,
    connectionsPerClient: 256,
    // One tunnel may carry picture, sound and what was fetched twice.
    bytes: 2 * maxFileBytes,
    // A webhook's receiver may think as long as its sender waits.
    idleSeconds: Math.max(60, webhookSeconds + 5),
    totalSeconds: jobSeconds,
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

function waitForEnd(lifeline: Readable | undefined): Promise<'signal' | 'lifeline'> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('signal'));
    // Ctrl-C in a terminal reaches a whole family; whoever holds the lifeline says when it is our turn.
    process.on('SIGINT', () => {
      if (!lifeline) resolve('signal');
    });
    for (const event of ['end', 'close', 'error']) lifeline?.once(event, () => resolve('lifeline'));
    lifeline?.resume();
  });
}
