import type { Terminal } from '../admin/terminal.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { egressPort, openEgress, readListenAddress } from '../egress/egress.ts';
import { openReadiness } from './readiness.ts';
import { RoleUsageError, type RunningRole, runRole } from './run-role.ts';
import { certificateFilesOf } from './socket.ts';

const usualDrainSeconds = 20;

const help = `Usage: trawl egress [--at PLACE] [--drain SECONDS] [--lifeline]

Runs the proxy through which everything reaches the addresses that callers name. When it is told to end, it takes no new connection
and ends with the last one.
  --at PLACE        the absolute path of a socket, or a port (${egressPort})
  --drain SECONDS   cuts the connections that are open so long after it was told to end (${usualDrainSeconds})
  --lifeline        ends when the standard input does
`;

export function runEgressRole(args: readonly string[], terminal: Terminal): Promise<number> {
  const options = { at: { type: 'string' }, drain: { type: 'string' }, lifeline: { type: 'boolean' } } as const;
  return runRole({ name: 'egress', help, options, logsTo: 'stderr', start }, args, terminal);
}

function start(running: RunningRole): Promise<void> {
  const at = String(running.options.at ?? egressPort);
  const place = readListenAddress(at, running.config.host);
  if (!place) throw new RoleUsageError(`--at ${at} is neither the absolute path of a socket nor a port`);
  return startEgress(running, [place], readDrain(running.options.drain));
}

function readDrain(option: unknown): number {
  if (option === undefined) return usualDrainSeconds;
  const text = String(option);
  if (!/^\d{1,6}$/.test(text)) throw new RoleUsageError(`--drain ${text} is no number of seconds`);
  return Number(text);
}

/** Opens the probe port and the proxy at these places. */
export async function startEgress(
  running: RunningRole,
  places: readonly ServerAddress[],
  drainSeconds = usualDrainSeconds,
): Promise<void> {
  const { config, log, metrics, stop, isOrphaned } = running;
  const readiness = await openReadiness(running, ['proxy']);
  const egress = await openEgress({ config, log, metrics, certificate: certificateFilesOf(config) });
  stop.add('proxy', () => egress.close(isOrphaned() ? 0 : drainSeconds));
  for (const place of places) {
    const port = await egress.listen(place);
    log.info('egress listens', 'path' in place ? place : { host: place.host, port });
  }
  log.info('egress is ready', { probe: readiness.port });
  readiness.set('proxy', () => true);
  stop.add('readiness', () => readiness.set('proxy', () => false));
}
