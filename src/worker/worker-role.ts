import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readConfig } from '../base/config.ts';
import { makeLog } from '../base/log.ts';
import { inspectUrl, produce } from '../media/download.ts';
import { findPrograms } from './programs.ts';
import { type Address, readAddress } from './relay.ts';
import { runWorker } from './worker.ts';

/** What the roles need of the terminal that they were started from. */
export interface Surroundings {
  readonly err: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Runs the role `worker` and gives its exit code. `--token-file FILE` takes the place of its input. */
export async function runWorkerRole(args: readonly string[], { env, err }: Surroundings): Promise<number> {
  const { TRAWL_GATEWAY_ADDRESS, TRAWL_EGRESS_ADDRESS, TRAWL_TERMINATION_FILE, ...rest } = env;
  const { values } = parseArgs({ args: [...args], options: { 'token-file': { type: 'string' } } });
  const config = readConfig(rest, (path) => readFileSync(path, 'utf8'));
  return runWorker({
    config,
    gateway: needAddress('TRAWL_GATEWAY_ADDRESS', TRAWL_GATEWAY_ADDRESS),
    egress: needAddress('TRAWL_EGRESS_ADDRESS', TRAWL_EGRESS_ADDRESS),
    terminationFile: TRAWL_TERMINATION_FILE || null,
    programs: findPrograms(env.PATH ?? ''),
    media: { produce, inspectUrl },
    log: makeLog({ level: config.logLevel, write: err, now: Date.now }),
    tokenFile: values['token-file'] ?? null,
    input: process.stdin,
  });
}

/** Reads an address that a role cannot do without. */
export function needAddress(name: string, text: string | undefined): Address {
  const address = readAddress(text ?? '');
  if (address) return address;
  throw new Error(`${name} must be unix:/path or http://host:port.`);
}
