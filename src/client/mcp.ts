import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ConfigError } from '../base/config.ts';
import type { McpAnswer, McpService } from '../mcp/mcp-tools.ts';
import { type ClientTerminal, ClientUsageError, exitCodes } from './client-terminal.ts';
import { findCredentials } from './credentials.ts';
import { followJob } from './follow-job.ts';
import { makePatience, ServiceAway } from './patience.ts';
import { CallRefused, makeServiceClient, type ServiceCall } from './service-client.ts';

const usage = 'trawl mcp';

export const mcpHelp = `Usage: ${usage}

A server of the Model Context Protocol on standard input and output, for programs that act for people. Its tools are metadata,
download, job and usage. Address and key are those of trawl get: TRAWL_API_URL and TRAWL_API_KEY, else what trawl login keeps. No
result holds the key. POST /mcp of the service has the same tools without this command.

  --help  Show this text.
`;

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
function remoteService(credentials: ReturnType<typeof findCredentials>): McpService {
  const patience = makePatience(credentials.url);
  const client = makeServiceClient(credentials, patience);
  const ask = (path: string, call: Partial<ServiceCall> = {}): Promise<McpAnswer> =>
    answer(async () => {
      const body = await client.call(path, { signal: new AbortController().signal, ...call });
      return body as Record<string, unknown>;
    });
  const readJob = (jobId: string) => ask(`/v1/jobs/${encodeURIComponent(jobId)}`);
  return {
    call: async ({ operation, jobId = '', parameters }) => {
      if (operation === 'usage') return ask('/v1/usage');
      if (operation === 'job') return readJob(jobId);
      return ask(paths[operation], { method: 'POST', body: parameters, idempotencyKey: randomUUID() });
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
