import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readConfig } from '../base/config.ts';
import { makeLog } from '../base/log.ts';
import { inspectUrl, produce } from '../media/produce-file.ts';
import { findPrograms } from '../worker/find-programs.ts';
import { runWorker } from '../worker/worker.ts';

const slowSeconds = 60;

/** What the roles need of the terminal that they were started from. */
export interface Surroundings {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const help = `Usage: trawl worker [--token-file FILE]

Runs one attempt of one job, whose token is a line on standard input, and ends.
  --token-file FILE   takes the token from a file
`;

/** Runs the role `worker` and gives its exit code. */
export async function runWorkerRole(args: readonly string[], { env, out, err }: Surroundings): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { 'token-file': { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  if (values.help) {
    out(help);
    return 0;
  }
  const config = readConfig(env, (path) => readFileSync(path, 'utf8'), {
    required: ['TRAWL_GATEWAY_ADDRESS', 'TRAWL_EGRESS_ADDRESS'],
  });
  return runWorker({
    config,
    gateway: config.gatewayAddress,
    egress: config.egressAddress,
    terminationFile: config.terminationFile,
    programs: findPrograms(env.PATH ?? ''),
    media: { produce, inspectUrl },
    log: makeLog({ level: config.logLevel, write: err, now: Date.now }),
    tokenFile: values['token-file'] ?? null,
    input: process.stdin,
    slowSeconds,
  });
}
