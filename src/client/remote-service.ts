import { randomUUID } from 'node:crypto';
import type { McpAnswer, McpCall, McpService } from '../mcp/mcp-tools.ts';
import type { findCredentials } from './credentials.ts';
import { followJob } from './follow-job.ts';
import { defaultPatience, makePatience, ServiceAway } from './patience.ts';
import { CallRefused, makeServiceClient, type ServiceCall, type ServiceClient } from './service-client.ts';

/** The service reads metadata for up to a minute, and may have the call wait for a free inspector before. */
const metadataMs = 75_000;
/** Codes of errors that do not tell if an earlier try of the call was carried out. */
const leavesOpen = /^(?:unavailable|internal_error|idempotency_conflict|http_5\d\d)$/;
const paths = { video: '/v1/video/download', audio: '/v1/audio/download', metadata: '/v1/media/metadata' };

/** The API of a service elsewhere. */
export function remoteService(credentials: ReturnType<typeof findCredentials>, limits = defaultPatience): McpService {
  const patience = makePatience(credentials.url, limits);
  const client = makeServiceClient(credentials, patience);
  const readJob = (jobId: string, call: ServiceCall) => ask(client, `/v1/jobs/${encodeURIComponent(jobId)}`, call);
  let hasAnswered = false;
  return {
    call: async ({ signal, ...call }) => {
      if (call.operation === 'usage') return ask(client, '/v1/usage', { signal });
      if (call.operation === 'job') return readJob(call.jobId ?? '', { signal });
      if (call.operation !== 'metadata') return askOnce(client, call, { signal });
      // The first contact: reading metadata takes longer than the service may be silent before.
      const heard = hasAnswered || (await ask(client, '/v1/usage?view=reduced', { signal }));
      if (heard !== true && 'error' in heard) return heard;
      hasAnswered = true;
      const { start } = makePatience(credentials.url, { ...limits, firstMs: Math.max(limits.firstMs, metadataMs) });
      return askOnce(client, call, { signal, answerMs: metadataMs, silence: start() });
    },
    follow: async (jobId, seconds, seen, signal) => {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(seconds * 1000))]);
      const followed = await answer(async () => {
        await followJob({ client, patience, jobId, signal: limit }, (job) => seen({ ...job }));
        return {};
      }, limit);
      return 'error' in followed || signal.aborted ? followed : readJob(jobId, { signal });
    },
  };
}

/** Makes a call that costs a credit, all of its tries under one key; an error that may leave something paid for names that key. */
async function askOnce(
  client: ServiceClient,
  { operation, parameters, idempotencyKey = randomUUID() }: Omit<McpCall, 'signal'>,
  call: ServiceCall,
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

function ask(client: ServiceClient, path: string, call: ServiceCall): Promise<McpAnswer> {
  return answer(async () => (await client.call(path, call)) as Record<string, unknown>, call.signal);
}

/** Returns the answer or the refusal of a call; a wait that is over is no failure. */
async function answer(work: () => Promise<Record<string, unknown>>, limit: AbortSignal): Promise<McpAnswer> {
  try {
    return { body: await work() };
  } catch (error) {
    if (limit.aborted) return { body: {} };
    if (error instanceof CallRefused) return { error: error.message, error_code: error.code };
    if (error instanceof ServiceAway) return { error: error.message, error_code: 'unavailable' };
    throw error;
  }
}
