import { UsageError } from '../base/command-line.ts';
import type { SocketAddress } from '../base/server-address.ts';
import { egressPort, readListenAddress } from '../egress/egress.ts';
import { makeRole, type RunningRole } from './run-role.ts';
import { serveEgress } from './serve-egress.ts';

const defaultDrainSeconds = 20;

const help = `Usage: trawl egress [--at PLACE] [--drain SECONDS] [--probe PATH] [--lifeline]

Runs the proxy through which everything reaches the addresses that callers name. When it is told to end, it takes no new connection
and ends with the last one.
  --at PLACE        the absolute path of a socket, or a port (${egressPort})
  --drain SECONDS   cuts the connections that are open so long after it was told to end (${defaultDrainSeconds})
  --probe PATH      the absolute path of a socket for the probes, in place of TRAWL_PROBE_PORT
  --lifeline        ends when the standard input does
`;

const text = { type: 'string' } as const;
const options = { at: text, drain: text, probe: text, lifeline: { type: 'boolean' } } as const;

export const runCommand = makeRole({ name: 'egress', help, options, logsTo: 'stderr', start });

function start(running: RunningRole): Promise<void> {
  const at = String(running.options.at ?? egressPort);
  const address = readListenAddress(at, running.config.host);
  if (!address) throw new UsageError(`--at ${at} is neither the absolute path of a socket nor a port`);
  return serveEgress(running, [address], readDrain(running.options.drain), readProbe(running.options.probe));
}

function readProbe(option: unknown): SocketAddress | undefined {
  if (option === undefined) return undefined;
  const address = readListenAddress(String(option), '');
  if (address && 'path' in address) return address;
  throw new UsageError(`--probe ${option} is no absolute path of a socket`);
}

function readDrain(option: unknown): number {
  if (option === undefined) return defaultDrainSeconds;
  const text = String(option);
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`--drain ${text} is no number of seconds`);
  return Number(text);
}
