import type { ServerAddress, SocketAddress } from '../base/server-address.ts';
import { openEgress } from '../egress/egress.ts';
import { openReadiness } from './readiness.ts';
import type { RunningRole } from './run-role.ts';
import { certificateFilesOf } from './socket.ts';

/** Opens the proxy at these addresses, and the probes at their port or, where one is named, at a socket. */
export async function serveEgress(
  running: RunningRole,
  addresses: readonly ServerAddress[],
  drainSeconds: number,
  probeSocket?: SocketAddress,
): Promise<void> {
  const { config, log, metrics, stop, isOrphaned } = running;
  const readiness = await openReadiness(running, ['proxy'], probeSocket);
  const egress = await openEgress({ config, log, metrics, certificate: certificateFilesOf(config, metrics) });
  stop.add('proxy', () => egress.close(isOrphaned() ? 0 : drainSeconds));
  for (const address of addresses) {
    const port = await egress.listen(address);
    log.info('egress listens', 'path' in address ? address : { host: address.host, port });
  }
  log.info('egress is ready', { probe: probeSocket?.path ?? readiness.port });
  readiness.set('proxy', () => true);
  stop.add('readiness', () => readiness.set('proxy', () => false));
}
