import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Config } from '../base/config.ts';
import { failures } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { attemptMemoryBytes } from '../base/resource-limits.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { type Outcome, writeTerminationMessage } from '../model/outcome.ts';
import { enterIsolation } from './enter-isolation.ts';
import { type GatewayClient, openGatewayClient, type ToldOutcome } from './gateway-client.ts';
import { type AttemptOptions, runAttempt } from './run-attempt.ts';
import { startStageClock } from './stage-clock.ts';

/** Exit codes: a permanent failure is `failed`, one that a new attempt may avoid is `retryable`. */
const exitCodes = { done: 0, failed: 64, retryable: 75, interrupted: 143 } as const;

interface WorkerOptions extends Pick<AttemptOptions, 'media' | 'programs' | 'egress' | 'log'> {
  readonly config: Pick<Config, 'cgroup' | 'data' | 'sandbox' | 'workerNetwork' | 'ytdlpPlugins'>;
  /** True in a container of a cluster. */
  readonly isPod: boolean;
  readonly gateway: ServerAddress;
  /** File for the outcome, at most 4 KB, which Kubernetes puts into the pod's status; `null` outside a cluster. */
  readonly terminationFile: string | null;
  /** File with the token; its content may change while the attempt runs. */
  readonly tokenFile: string | null;
  /** Without a file, the first line is the token, and the end of input interrupts the attempt. */
  readonly input: Readable;
  /** Ends a fetch that stays below 10 KiB a second for so long. */
  readonly slowSeconds: number;
}

const slowBytes = 10 * 1024;
const patienceSeconds = 300;
/** Time limit of the verdict after SIGTERM, when SIGKILL follows soon. */
const lastWordSeconds = 2;

/** Runs one attempt and returns the exit code. SIGTERM interrupts the attempt. */
export async function runWorker(options: WorkerOptions): Promise<number> {
  const { config, isPod, gateway: address, egress, terminationFile, programs, media, slowSeconds, log } = options;
  const leave = new AbortController();
  const stop = () => leave.abort();
  process.once('SIGTERM', stop);
  const root = join(resolve(config.data), 'work');
  const sandbox = enterIsolation({ config, root, python: programs.python, isPod, log });
  // A refused start waits for no token.
  sandbox.catch(() => options.input.destroy());
  const token = await findToken(options, stop);
  const cgroups = config.cgroup === 'off' ? null : config.cgroup;
  const gateway = openGatewayClient(address, token, patienceSeconds, leave.signal);
  const stages = startStageClock();
  const outcome = await runAttempt({
    ...{ gateway, media, programs, egress, log, root, cgroups, slowBytes, slowSeconds, patienceSeconds, stages },
    signal: leave.signal,
    sandbox: await sandbox,
    memoryBytes: attemptMemoryBytes,
    plugins: config.ytdlpPlugins,
  });
  if (terminationFile !== null && outcome) await writeFile(terminationFile, writeTerminationMessage(outcome));
  const seconds = leave.signal.aborted ? lastWordSeconds : patienceSeconds;
  const signal = AbortSignal.timeout(seconds * 1000);
  await sendVerdict(
    outcome && { ...outcome, stages: stages.times() },
    openGatewayClient(address, token, seconds, signal),
    log,
  );
  options.input.destroy();
  return exitCodeOf(outcome);
}

async function findToken({ tokenFile, input }: WorkerOptions, leave: () => void): Promise<() => string> {
  if (tokenFile !== null) return () => readFileSync(tokenFile, 'utf8').trim();
  const lines = createInterface({ input });
  lines.once('close', leave);
  const [token = ''] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as string[];
  return () => token;
}

async function sendVerdict(outcome: ToldOutcome | null, gateway: GatewayClient, log: Log): Promise<void> {
  if (outcome === null) return;
  try {
    await gateway.sendVerdict(outcome);
  } catch (error) {
    // The exit code still tells the class of the end; at worst a new attempt repeats the work.
    log.warn('verdict not delivered', { error: String(error) });
  }
}

function exitCodeOf(outcome: Outcome | null): number {
  if (outcome === null || outcome.is === 'interrupted') return exitCodes.interrupted;
  if (outcome.is === 'done') return exitCodes.done;
  return failures[outcome.code].retryable ? exitCodes.retryable : exitCodes.failed;
}
