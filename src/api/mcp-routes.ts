import { pipeline } from 'node:stream/promises';
import { Refusal, type RefusalCode, refuse } from '../base/errors.ts';
import { membersOf } from '../base/parse-json.ts';
import type { McpAnswer, McpCall, McpService } from '../mcp/mcp-tools.ts';
import { mcpTools } from '../mcp/mcp-tools.ts';
import { parseFlags } from '../model/request-parameters.ts';
import type { KeyedCall, KeyedHandler } from './api-call.ts';
import { isGone } from './file-routes.ts';
import { enterAgain, enterFree, requireFlags } from './free-call.ts';
import type { JobRoutes } from './job-routes.ts';
import { readOwnJob } from './job-view.ts';
import { followJob, type WatchedJob } from './job-watch.ts';
import { streamHeaders } from './reply.ts';
import { headerOf } from './request-syntax.ts';

/** Dependencies of the route of the Model Context Protocol: the handlers of what its tools do. */
interface McpRoutes extends Pick<JobRoutes, 'store' | 'viewJob' | 'watchJob' | 'draining' | 'log'> {
  readonly handlers: Readonly<Record<McpCall['operation'], KeyedHandler>>;
}

/** Refusals that answer the request itself, in the order of D10; all others are results of the tool. */
const ofTheCall: readonly RefusalCode[] = [
  'invalid_api_key',
  'inactive_api_key',
  'expired_api_key',
  'forbidden',
  'rate_limited',
  'unavailable',
  'internal_error',
];
const protocolHeaders = ['accept', 'content-type', 'mcp-protocol-version'];
const members = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'];

/** POST of one JSON-RPC message. The call of a tool is judged as the call of the API that it makes; every other one as a free call. */
export function answerMcp(routes: McpRoutes): KeyedHandler {
  return async (call) => {
    const message = messageOf(call.given);
    if (call.fault !== null || !isToolCall(message) || !parseFlags(call.given).ok) {
      await enterFree(routes.store, call);
      requireFlags(call);
    }
    const judged = Promise.withResolvers<true>();
    // It is awaited below; a refusal may come before that.
    judged.promise.catch(() => {});
    if (!isToolCall(message)) judged.resolve(true);
    const written = { isLogged: false };
    const service = ownService(routes, call, judged, written);
    const { answerMessage } = await import('../mcp/mcp-server.ts');
    const { response, close } = await answerMessage(service, protocolHeadersOf(call.req), message);
    call.res.once('close', () => void close());
    try {
      const chunks = response.body?.getReader();
      const first = chunks?.read();
      // The protocol may refuse a tool before it has called anything.
      const isJudged = await Promise.race([judged.promise, Promise.resolve(first).then(() => false)]);
      if (!isJudged && !(await isSettled(judged.promise))) await enterFree(routes.store, call);
      if (response.status >= 400) throw refuse('bad_request', `Bad Request: ${sentenceOf((await first)?.value)}`);
      await send(call, response, bytesOf(first, chunks));
    } catch (error) {
      if (!isGone(error)) throw error;
    } finally {
      await close();
    }
    // The script that charged a tool has written the line of the request log.
    return written.isLogged ? { status: call.res.statusCode, body: {}, isLogged: true } : null;
  };
}

/** Returns the JSON-RPC message in the body of a call, without the parameters of the API beside it. */
function messageOf(given: KeyedCall['given']): Readonly<Record<string, unknown>> {
  return Object.fromEntries(members.flatMap((name) => (name in given ? [[name, given[name]]] : [])));
}

/** Returns the headers that the SDK judges. It wants both types named, and many callers send only that any type will do. */
function protocolHeadersOf(req: KeyedCall['req']): Record<string, string> {
  const headers = Object.fromEntries(
    protocolHeaders.flatMap((name) => {
      const value = headerOf(req, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  if (/\*\/\*/.test(headers.accept ?? '*/*')) headers.accept = 'application/json, text/event-stream';
  return headers;
}

function isToolCall({ method, id, params }: Readonly<Record<string, unknown>>): boolean {
  const { name } = membersOf(params);
  return method === 'tools/call' && id !== undefined && mcpTools.some((tool) => tool.name === name);
}

/** The API within this process; `judged` settles with the first call that the tool makes, `written` tells of a line of the request log. */
function ownService(
  routes: McpRoutes,
  call: KeyedCall,
  judged: PromiseWithResolvers<true>,
  written: { isLogged: boolean },
): McpService {
  const answer = async (work: () => Promise<McpAnswer>): Promise<McpAnswer> => {
    try {
      const answered = await work();
      judged.resolve(true);
      return answered;
    } catch (error) {
      if (!(error instanceof Refusal) || ofTheCall.includes(error.code)) judged.reject(error);
      judged.resolve(true);
      if (error instanceof Refusal) return { error: error.message, error_code: error.code };
      routes.log.error('a tool failed', { error });
      return { error: refuse('internal_error').message, error_code: 'internal_error' };
    }
  };
  return {
    // The handlers see by themselves when the connection is closed.
    call: ({ operation, jobId, parameters, signal: _signal, ...repeat }) =>
      answer(async () => {
        call.req.params = jobId === undefined ? {} : { id: jobId };
        const reply = await routes.handlers[operation]({ ...call, ...repeat, given: parameters });
        if (reply === null) throw refuse('unavailable');
        written.isLogged ||= reply.isLogged === true;
        const { error } = reply.body as { error?: unknown };
        if (reply.status < 400) return { body: { ...reply.body } };
        return { error: String(error), error_code: reply.headers?.['x-error-code'] ?? 'internal_error' };
      }),
    follow: (jobId, seconds, seen, signal) =>
      answer(() => call.idle(() => followOwnJob(routes, call, jobId, seconds, seen, signal))),
  };
}

async function followOwnJob(
  routes: McpRoutes,
  call: KeyedCall,
  ...[jobId, seconds, seen, signal]: Parameters<McpService['follow']>
): Promise<McpAnswer> {
  const first = await readOwnJob(routes.store, call.key.accountId, jobId);
  if (first === null) throw refuse('not_found');
  const tell = ({ job, position }: WatchedJob) => seen(routes.viewJob(job, position));
  const last = await followJob(routes, { first, res: call.res, seconds, signal }, tell);
  await enterAgain(routes.store, call);
  if (last === null) throw refuse('not_found');
  return { body: routes.viewJob(last.job, last.position) };
}

/** Writes the SDK's answer as it comes: an event for each progress, then the result. */
async function send({ res, headers }: KeyedCall, response: Response, body: AsyncIterable<Uint8Array>): Promise<void> {
  const type = response.headers.get('content-type');
  const shown = { ...streamHeaders, ...(type !== null && { 'content-type': type }) };
  res.writeHead(response.status, { ...headers, ...shown });
  await pipeline(body, res);
}

type Chunks = ReadableStreamDefaultReader<Uint8Array>;

async function* bytesOf(first: ReturnType<Chunks['read']> | undefined, chunks: Chunks | undefined) {
  for (let chunk = await first; chunk !== undefined && !chunk.done; chunk = await chunks?.read()) yield chunk.value;
}

/** Returns true for a promise that has settled; throws when it was rejected. */
function isSettled(promise: Promise<true>): Promise<boolean> {
  return Promise.race([promise, Promise.resolve(false)]);
}

function sentenceOf(bytes: Uint8Array | undefined): string {
  const { error } = JSON.parse(Buffer.from(bytes ?? []).toString() || '{}') as { error?: { message?: string } };
  return error?.message?.replace(/^Bad Request: /, '') ?? 'this is no message of the Model Context Protocol';
}
