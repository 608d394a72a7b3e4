import { writeFile } from 'node:fs/promises';
import { inspectUrl } from '../media/inspect-url.ts';
import { produce } from '../media/produce-file.ts';
import { isPod } from '../worker/enter-isolation.ts';
import { findPrograms } from '../worker/find-programs.ts';
import { runWorker } from '../worker/worker.ts';
import { makeRole, type RoleTools } from './run-role.ts';

const slowSeconds = 60;
const maxTrialMs = 10_000;
const required = ['TRAWL_GATEWAY_ADDRESS', 'TRAWL_EGRESS_ADDRESS'] as const;

const help = `Usage: trawl worker [--token-file FILE | --try-network HOST:PORT]

Runs one attempt of one job, whose token is a line on standard input, and ends.
  --token-file FILE         takes the token from a file
  --try-network HOST:PORT   runs nothing: tells, as JSON, whether this pod reaches gateway and egress, which it must, and that
                            address or the API server, which network policies close to it
`;

const options = { 'token-file': { type: 'string' }, 'try-network': { type: 'string' } } as const;

/** The exit code names the class of the attempt's end. */
export const runCommand = makeRole({ name: 'worker', help, options, needs: { required }, logsTo: 'stderr', run });

function run(tools: RoleTools<(typeof required)[number]>): Promise<number> {
  const { config, log, terminal, options } = tools;
  const { 'token-file': tokenFile, 'try-network': closed } = options;
  if (typeof closed === 'string') return tellNetwork(tools, closed);
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

/** Tells what network policies leave open, to the file that the status of the pod gets, or on standard output. */
async function tellNetwork(tools: RoleTools<(typeof required)[number]>, closed: string): Promise<number> {
  const { config, terminal } = tools;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = terminal.env;
  const server = host && port ? [`${host.includes(':') ? `[${host}]` : host}:${port}`] : [];
  const needed = [config.gatewayAddress, config.egressAddress];
  // Loaded here only, so that a worker starts fast.
  const { tryNetwork } = await import('../worker/try-network.ts');
  const trial = JSON.stringify(await tryNetwork({ needed, closed: [closed, ...server], maxMs: maxTrialMs }));
  if (config.terminationFile === null) terminal.out(`${trial}\n`);
  else await writeFile(config.terminationFile, trial);
  return 0;
}
