import type { Terminal } from '../admin/terminal.ts';
import { inspectUrl } from '../media/inspect-url.ts';
import { produce } from '../media/produce-file.ts';
import { isPod } from '../worker/enter-isolation.ts';
import { findPrograms } from '../worker/find-programs.ts';
import { runWorker } from '../worker/worker.ts';
import { type RoleTools, runRole } from './run-role.ts';

const slowSeconds = 60;
const required = ['TRAWL_GATEWAY_ADDRESS', 'TRAWL_EGRESS_ADDRESS'] as const;

const help = `Usage: trawl worker [--token-file FILE]

Runs one attempt of one job, whose token is a line on standard input, and ends.
  --token-file FILE   takes the token from a file
`;

/** The exit code names the class of the attempt's end. */
export function runWorkerRole(args: readonly string[], terminal: Terminal): Promise<number> {
  const options = { 'token-file': { type: 'string' } } as const;
  return runRole({ name: 'worker', help, options, needs: { required }, logsTo: 'stderr', run }, args, terminal);
}

function run({ config, log, terminal, options }: RoleTools<(typeof required)[number]>): Promise<number> {
  const tokenFile = options['token-file'];
  return runWorker({
    config,
    isPod: isPod(terminal.env),
    gateway: config.gatewayAddress,
    egress: config.egressAddress,
    terminationFile: config.terminationFile,
    programs: findPrograms(terminal.env.PATH ?? ''),
    media: { produce, inspectUrl },
    log,
    tokenFile: typeof tokenFile === 'string' ? tokenFile : null,
    input: process.stdin,
    slowSeconds,
  });
}
