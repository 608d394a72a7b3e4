import { startProbeServer } from '../base/probe-server.ts';
import type { RunningRole } from './run-role.ts';

/** What must hold before the work can be done, by the name of the part that it needs. */
export type Checks = Map<string, () => boolean | Promise<boolean>>;

/** Opens the probe port. Each part that is named is missing until its check is set. */
export async function openChecks(
  { config, metrics, stop }: Pick<RunningRole, 'config' | 'metrics' | 'stop'>,
  names: readonly string[],
): Promise<Checks> {
  const checks: Checks = new Map(names.map((name) => [name, () => false]));
  const probe = await startProbeServer({
    port: config.probePort,
    host: config.host,
    metrics,
    ready: () => findMissing(checks),
  });
  stop.add('probe', probe.close);
  return checks;
}

/** Names the parts that cannot do their work now. */
async function findMissing(checks: Checks): Promise<string[]> {
  const asked = [...checks].map(async ([name, holds]) => ((await holds()) ? [] : [name]));
  return (await Promise.all(asked)).flat();
}
