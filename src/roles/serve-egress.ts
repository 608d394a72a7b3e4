import type { ServerAddress, SocketAddress } from '../base/server-address.ts';
import { openEgress } from '../egress/egress.ts';
import { openReadiness } from './readiness.ts';
import type { RunningRole } from './run-role.ts';
import { certificateFilesOf } from './socket.ts';

/** Opens the proxy at these places, and the probes at their port or, where one is named, at a socket. */
export async function serveEgress(
  running: RunningRole,
  places: readonly ServerAddress[],
  drainSeconds: number,
  probeSocket?: SocketAddress,
): Promise<void> {
  const { config, log, metrics, stop, isOrphaned } = running;
  const readiness = await openReadiness(running, ['proxy'], probeSocket);
  const egress = await openEgress({ config, log, metrics, certificate: certificateFilesOf(config, metrics) });
  stop.add('proxy', () => egress.close(isOrphaned() ? 0 : drainSeconds));
  for (const place of places) {
    const port = await egress.listen(place);
    log.info('egress listens', 'path' in place ? place : { host: place.host, port });
  }
  log.info('egress is ready', { probe: probeSocket?.path ?? readiness.port });
  readiness.set('proxy', () => true);
  stop.add('readiness', () => readiness.set('proxy', () => false));
}
