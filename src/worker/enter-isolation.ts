import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';
import { readLandlockVersion } from '../base/landlock-version.ts';
import type { Log } from '../base/log.ts';
import { findOpenNetwork, isolationOf } from '../model/isolation.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import type { Sandbox } from './sandbox-command.ts';

interface IsolationOptions {
  readonly config: Pick<Config, 'sandbox' | 'workerNetwork'>;
  /** Folder of the children. */
  readonly root: string;
  readonly python: string;
  readonly isPod: boolean;
  readonly log: Log;
}

/** Chooses the isolation of children and logs its name; refuses where a pod has nothing that bars their TCP connections. */
export async function enterIsolation({ config, root, python, isPod, log }: IsolationOptions): Promise<Sandbox> {
  const [sandbox, landlock] = await Promise.all([
    chooseSandbox(config.sandbox, root, python, (sentence) => log.warn('no sandbox', { reason: sentence })),
    readLandlockVersion(python),
  ]);
  const isolation = isolationOf(sandbox, landlock, isPod);
  const fault = findOpenNetwork(isolation, landlock, config.workerNetwork);
  if (fault !== null) throw refuse('unavailable', fault);
  log.info('isolation of children', { isolation, landlock });
  return sandbox;
}

/** Returns true in a container of a cluster. */
export function isPod(env: Readonly<Record<string, string | undefined>>): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST || env.TRAWL_TERMINATION_FILE);
}
