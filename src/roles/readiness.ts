import { rm } from 'node:fs/promises';
import { startProbeServer } from '../base/probe-server.ts';
import type { SocketAddress } from '../base/server-address.ts';
import type { RecordStore } from '../store/script.ts';
import type { RunningRole } from './run-role.ts';
import { showAuthoritiesEnd } from './socket.ts';

type ReadinessCheck = () => boolean | Promise<boolean>;

export type Readiness = Awaited<ReturnType<typeof openReadiness>>;

/** Opens the probe port, or a socket in its place. Each named part is missing until its check is set. */
export async function openReadiness(
  { config, metrics, stop }: Pick<RunningRole, 'config' | 'metrics' | 'stop'>,
  parts: readonly string[],
  socket?: SocketAddress,
) {
  showAuthoritiesEnd(config, metrics);
  const checks = new Map<string, ReadinessCheck>(parts.map((part) => [part, () => false]));
  // A child that was killed leaves its socket behind.
  if (socket) await rm(socket.path, { force: true });
  const at = socket ?? { host: config.host, port: config.probePort };
  const probe = await startProbeServer({ at, metrics, ready: () => listMissing(checks) });
  stop.add('probe', probe.close);
  return {
    port: probe.port,
    /** The part is ready while its check returns true. */
    set: (part: string, check: ReadinessCheck) => void checks.set(part, check),
  };
}

/** True while Redis answers and this release may use the record. */
export function isRecordReady({ connection, release }: RecordStore): boolean {
  return connection.ready() && (release?.refusal() ?? null) === null;
}

async function listMissing(checks: ReadonlyMap<string, ReadinessCheck>): Promise<string[]> {
  const asked = [...checks].map(async ([part, holds]) => ((await holds()) ? [] : [part]));
  return (await Promise.all(asked)).flat();
}
