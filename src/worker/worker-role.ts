import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readConfig, type SettingName } from '../base/config.ts';
import type { Address } from '../base/kinds.ts';
import { makeLog } from '../base/log.ts';
import { inspectUrl, produce } from '../media/download.ts';
import { findPrograms } from './programs.ts';
import { runWorker } from './worker.ts';

const slowSeconds = 60;

/** What the roles need of the terminal that they were started from. */
export interface Surroundings {
  readonly err: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Runs the role `worker` and gives its exit code. `--token-file FILE` takes the place of its input. */
export async function runWorkerRole(args: readonly string[], { env, err }: Surroundings): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { 'token-file': { type: 'string' } } });
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'));
  return runWorker({
    config,
    gateway: needAddress('TRAWL_GATEWAY_ADDRESS', config.gatewayAddress),
    egress: needAddress('TRAWL_EGRESS_ADDRESS', config.egressAddress),
    terminationFile: config.terminationFile,
    programs: findPrograms(env.PATH ?? ''),
    media: { produce, inspectUrl },
    log: makeLog({ level: config.logLevel, write: err, now: Date.now }),
    tokenFile: values['token-file'] ?? null,
    input: process.stdin,
    slowSeconds,
  });
}

/** Gives an address that a role cannot do without, or throws a sentence that names its setting. */
export function needAddress(name: SettingName, address: Address | null): Address {
  if (address) return address;
  throw new Error(`${name} is needed in this role.`);
}
