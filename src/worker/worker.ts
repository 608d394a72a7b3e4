import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Config } from '../base/config.ts';
import { failures } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { metadataFields } from '../model/metadata.ts';
import type { Outcome } from '../model/outcome.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import type { ProgramPaths } from './find-programs.ts';
import { type GatewayClient, openGatewayClient } from './gateway-client.ts';
import { type Media, runAttempt } from './run-attempt.ts';

/** How the process tells its end: done, a failure that does not pass, one that may, an interruption. */
const exitCodes = { done: 0, failed: 64, retryable: 75, interrupted: 143 } as const;

/** What the role is told besides the settings. */
export interface WorkerOptions {
  readonly config: Pick<Config, 'data' | 'sandbox' | 'ytdlpPlugins'>;
  readonly gateway: ServerAddress;
  readonly egress: ServerAddress;
  /** File for the end of the attempt in at most 4 KB, where a cluster reads it. */
  readonly terminationFile: string | null;
  readonly programs: ProgramPaths;
  readonly media: Media;
  readonly log: Log;
  /** A file that holds the token; its content may change while the attempt runs. */
  readonly tokenFile: string | null;
  /** Without a file its first line is the token, and its end is a sign to leave. */
  readonly input: Readable;
  /** A fetch that stays below 10 KiB a second for so long is ended. */
  readonly slowSeconds: number;
}

const terminationBytes = 4096;
const memoryBytes = 2 ** 31;
const slowBytes = 10 * 1024;
const patienceSeconds = 300;
/** A worker that was told to stop has little time left for its last word. */
const lastWordSeconds = 2;

/** Runs one attempt and gives the exit code. SIGTERM ends it early. */
export async function runWorker(options: WorkerOptions): Promise<number> {
  const { config, gateway: address, egress, terminationFile, programs, media, slowSeconds, log } = options;
  const leave = new AbortController();
  const stop = () => leave.abort();
  process.once('SIGTERM', stop);
  const root = join(resolve(config.data), 'work');
  const sandbox = chooseSandbox(config.sandbox, root, (sentence) => log.warn('no sandbox', { reason: sentence }));
  const token = await findToken(options, stop);
  const gateway = openGatewayClient({ address, token, patienceSeconds, signal: leave.signal });
  const outcome = await runAttempt({
    ...{
      gateway,
      media,
      programs,
      egress,
      log,
      memoryBytes,
      slowBytes,
      slowSeconds,
      patienceSeconds,
      signal: leave.signal,
    },
    root,
    sandbox: await sandbox,
    plugins: config.ytdlpPlugins,
  });
  if (terminationFile !== null && outcome) await writeFile(terminationFile, shorten(outcome));
  const seconds = leave.signal.aborted ? lastWordSeconds : patienceSeconds;
  const signal = AbortSignal.timeout(seconds * 1000);
  await sendVerdict(outcome, openGatewayClient({ address, token, patienceSeconds: seconds, signal }), log);
  options.input.destroy();
  return exitCodeOf(outcome);
}

/**
 * Gives an outcome as JSON of at most 4 KB: what a caller would miss least goes first. Whoever may read pods reads it too,
 * so it holds no URL: the query of one may be all that protects what it leads to.
 */
export function shorten(outcome: Outcome): string {
  if (outcome.is !== 'done') return JSON.stringify(outcome);
  let { metadata } = outcome;
  for (const [name, kind] of Object.entries(metadataFields)) {
    if (kind === 'url') metadata = { ...metadata, [name]: null };
  }
  for (const name of ['description', 'title', 'channel', 'id'] as const) {
    const text = JSON.stringify({ ...outcome, metadata });
    if (Buffer.byteLength(text) <= terminationBytes) return text;
    metadata = { ...metadata, [name]: null };
  }
  return JSON.stringify({ ...outcome, metadata });
}

async function findToken({ tokenFile, input }: WorkerOptions, leave: () => void): Promise<() => string> {
  if (tokenFile !== null) return () => readFileSync(tokenFile, 'utf8').trim();
  const lines = createInterface({ input });
  lines.once('close', leave);
  const [token = ''] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as string[];
  return () => token;
}

async function sendVerdict(outcome: Outcome | null, gateway: GatewayClient, log: Log): Promise<void> {
  if (outcome === null) return;
  try {
    await gateway.sendVerdict(outcome);
  } catch (error) {
    // The exit code still tells the class of the end, and a new attempt does no harm.
    log.warn('verdict not delivered', { error: String(error) });
  }
}

function exitCodeOf(outcome: Outcome | null): number {
  if (outcome === null || outcome.is === 'interrupted') return exitCodes.interrupted;
  if (outcome.is === 'done') return exitCodes.done;
  return failures[outcome.code].retryable ? exitCodes.retryable : exitCodes.failed;
}
