import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ConfigError } from '../base/config.ts';
import type { McpAnswer, McpCall, McpService } from '../mcp/mcp-tools.ts';
import { type ClientTerminal, ClientUsageError, exitCodes } from './client-terminal.ts';
import { findCredentials } from './credentials.ts';
import { followJob } from './follow-job.ts';
import { makePatience, ServiceAway, usualLimits } from './patience.ts';
import { CallRefused, makeServiceClient, type ServiceCall, type ServiceClient } from './service-client.ts';

const usage = 'trawl mcp';

export const mcpHelp = `Usage: ${usage}

A server of the Model Context Protocol on standard input and output, for programs that act for people. Its tools are metadata,
download, job and usage. Address and key are those of trawl get: TRAWL_API_URL and TRAWL_API_KEY, else what trawl login keeps. No
result holds the key. POST /mcp of the service has the same tools without this command.

  --help  Show this text.
`;

/** The service reads metadata for up to a minute, and may have the call wait for a free inspector before. */
const metadataMs = 75_000;
/** Codes of errors that do not tell if an earlier try of the call was carried out. */
const leavesOpen = /^(?:unavailable|internal_error|idempotency_conflict|http_5\d\d)$/;
const paths = { video: '/v1/video/download', audio: '/v1/audio/download', metadata: '/v1/media/metadata' };

/** Serves the program that started this one, until it closes standard input. */
export async function runMcp(args: readonly string[], { out, err, env }: ClientTerminal): Promise<number> {
  try {
    const { values } = parse(args);
    if (values.help) {
      out(mcpHelp);
      return exitCodes.done;
    }
    const service = remoteService(findCredentials(env));
    const { serveStdio } = await import('../mcp/mcp-server.ts');
    await serveStdio(service, readVersion());
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof ClientUsageError || error instanceof ConfigError)) throw error;
    err(`${error.message}\nUsage: ${usage}\n`);
    return exitCodes.usage;
  }
}

function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: { help: { type: 'boolean', short: 'h' } } });
  } catch (error) {
    throw new ClientUsageError(error instanceof Error ? error.message : String(error));
  }
}

/** The API of a service elsewhere. */
export function remoteService(credentials: ReturnType<typeof findCredentials>, limits = usualLimits): McpService {
  const patience = makePatience(credentials.url, limits);
  const client = makeServiceClient(credentials, patience);
  const readJob = (jobId: string) => ask(client, `/v1/jobs/${encodeURIComponent(jobId)}`);
  let hasAnswered = false;
  return {
    call: async (call) => {
      if (call.operation === 'usage') return ask(client, '/v1/usage');
      if (call.operation === 'job') return readJob(call.jobId ?? '');
      if (call.operation !== 'metadata') return askOnce(client, call);
      // The first contact: reading metadata takes longer than the service may be silent before.
      const heard = hasAnswered || (await ask(client, '/v1/usage?view=reduced'));
      if (heard !== true && 'error' in heard) return heard;
      hasAnswered = true;
      const { start } = makePatience(credentials.url, { ...limits, firstMs: Math.max(limits.firstMs, metadataMs) });
      return askOnce(client, call, { answerMs: metadataMs, silence: start() });
    },
    follow: async (jobId, seconds, seen, signal) => {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(seconds * 1000))]);
      const followed = await answer(async () => {
        await followJob(client, patience, jobId, (job) => seen({ ...job }), limit);
        return {};
      }, limit);
      return 'error' in followed ? followed : readJob(jobId);
    },
  };
}

/** Makes a call that costs a credit, all of its tries under one key; an error that may leave something paid for names that key. */
async function askOnce(
  client: ServiceClient,
  { operation, parameters, idempotencyKey = randomUUID() }: McpCall,
  call: Partial<ServiceCall> = {},
): Promise<McpAnswer> {
  let mayBeDone = false;
  const noteMayBeDone = () => {
    mayBeDone = true;
  };
  const path = paths[operation as keyof typeof paths];
  const sent = { method: 'POST', body: parameters, idempotencyKey, noteMayBeDone } as const;
  const answered = await ask(client, path, { ...sent, ...call });
  if (!('error' in answered) || !mayBeDone || !leavesOpen.test(answered.error_code)) return answered;
  const repeat = `It may have been carried out: repeat it with idempotency_key ${idempotencyKey}, which costs nothing more.`;
  return { ...answered, error: `${answered.error}. ${repeat}` };
}

function ask(client: ServiceClient, path: string, call: Partial<ServiceCall> = {}): Promise<McpAnswer> {
  return answer(async () => {
    const body = await client.call(path, { signal: new AbortController().signal, ...call });
    return body as Record<string, unknown>;
  });
}

/** Returns the answer or the refusal of a call; a wait that is over is no failure. */
async function answer(work: () => Promise<Record<string, unknown>>, limit?: AbortSignal): Promise<McpAnswer> {
  try {
    return { body: await work() };
  } catch (error) {
    if (limit?.aborted) return { body: {} };
    if (error instanceof CallRefused) return { error: error.message, error_code: error.code };
    if (error instanceof ServiceAway) return { error: error.message, error_code: 'unavailable' };
    throw error;
  }
}
