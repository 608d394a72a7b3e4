import { randomUUID } from 'node:crypto';
import type { RequestListener, ServerResponse } from 'node:http';
import { type Request, type Response, Router } from 'express';
import { isRefusal, refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Traces } from '../base/traces.ts';
import { readKey } from '../model/api-key.ts';
import { wantsSoftFail } from '../model/request-parameters.ts';
import { traceField } from '../model/trace-context.ts';
import type { RequestLogWriter } from '../store/log/write-lines.ts';
import type { ApiCall, ApiRequest, KeyedHandler, OpenHandler, ServedRoute } from './api-call.ts';
import type { BlockedAddresses, FindCaller } from './caller-address.ts';
import type { KeylessLimit } from './keyless-limit.ts';
import type { WarnOfPart } from './part-warnings.ts';
import { type ApiReply, errorReply, goneStatus, type ReplyHeaders, sendReply, softened } from './reply.ts';
import {
  discardBody,
  escapedPath,
  hasOneHost,
  headerOf,
  isArriving,
  isLoadedByOtherSite,
  judgeQuery,
  mergeParameters,
  type RequestBody,
  readJsonBody,
  readQuery,
  requireSmallBody,
} from './request-syntax.ts';
import { beginTrace, recordRequest } from './request-trace.ts';
import { allowedMethods, keyedRoutes, openRoutes, pathTemplate, type Route } from './routes.ts';

/** The parts of the API that every request passes, whatever its route. */
interface ApiServer {
  readonly findCaller: FindCaller;
  readonly blocked: BlockedAddresses;
  /** Of the routes that need no key. */
  readonly limitKeyless: KeylessLimit;
  readonly lines: RequestLogWriter;
  readonly log: Log;
  readonly warnOfPart: WarnOfPart;
  readonly metrics: Metrics;
  readonly now: () => number;
  /** Aborted when the process stops: then every answer closes its connection. */
  readonly draining: AbortSignal;
  readonly traces: Traces | null;
  /** Status of `key_quota_exceeded` (D34). */
  readonly keyQuotaStatus: number;
  /** Complete requests that were not answered yet, those that only wait excepted; this file alone changes it. */
  inHand: number;
}

export type ApiHandlers = Readonly<
  Record<keyof typeof keyedRoutes, KeyedHandler> & Record<keyof typeof openRoutes, OpenHandler>
>;

const maxInHand = 1000;
const noBody: RequestBody = { parameters: {}, fault: null };
const requestIdForm = /^[\w.-]{1,64}$/;

/** Makes the public API: every route under all its paths, behind the same checks. */
export function makeApp(server: ApiServer, handlers: ApiHandlers): RequestListener {
  const router = Router({ strict: true, caseSensitive: true });
  const add = (row: Route, answer: (call: ApiCall) => Promise<ApiReply | null>) => {
    const route = { ...row, allowed: allowedMethods(row), template: pathTemplate(row.paths[0]) };
    // Not `router.all`, which makes a layer of the router for each HTTP method.
    router.route([...route.paths]).all((req, res) => serve(server, startCall(server, route, req, res), route, answer));
  };
  for (const name of Object.keys(keyedRoutes) as (keyof typeof keyedRoutes)[]) {
    add(keyedRoutes[name], (call) => answerKeyed(server, call, handlers[name]));
  }
  for (const name of Object.keys(openRoutes) as (keyof typeof openRoutes)[]) {
    add(openRoutes[name], async (call) => {
      server.limitKeyless(call.req, call.res);
      // It is not in hand itself: a download takes as long as its caller reads.
      requireRoom(server);
      return handlers[name](call);
    });
  }
  return (message, res) => {
    // The type asks for the requests of an Express application; the router needs nothing of them.
    const req = message as Request;
    const end = (error: unknown) => {
      if (error instanceof URIError) {
        // A parameter of the path is judged with all others, behind the key (D10).
        req.url = escapedPath(req.url);
        return router(req, res as Response, end);
      }
      if (error) {
        server.log.error('a request failed outside its route', { error });
        res.destroy();
        return;
      }
      finish(server, startCall(server, null, req, res), errorReply(refuse('not_found'), server.keyQuotaStatus));
    };
    router(req, res as Response, end);
  };
}

/** Begins a request: its id, its caller, its query, and the headers that every answer has. */
function startCall(server: ApiServer, route: ServedRoute | null, req: ApiRequest, res: ServerResponse): ApiCall {
  const requestId = headerOf(req, 'x-request-id') ?? '';
  const headers: ReplyHeaders = {
    'x-request-id': requestIdForm.test(requestId) ? requestId : randomUUID(),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
  if (server.draining.aborted) headers.connection = 'close';
  const caller = server.findCaller(req.socket.remoteAddress, headerOf(req, 'x-forwarded-for'));
  const trace = server.traces && route?.isTraced ? beginTrace(headerOf(req, 'traceparent')) : null;
  return { req, res, headers, route, caller, began: performance.now(), given: readQuery(req.url), trace, logged: null };
}

/** Answers a request from its first check to its line in the request log. */
async function serve(
  server: ApiServer,
  call: ApiCall,
  route: ServedRoute,
  answer: (call: ApiCall) => Promise<ApiReply | null>,
): Promise<void> {
  let reply: ApiReply | null;
  try {
    const isDone = answerHttp(call, route);
    reply = isDone ? null : await answer(call);
  } catch (error) {
    reply = errorReply(error, server.keyQuotaStatus);
    // A caller that is gone explains any failure.
    if (reply.status >= 500 && call.res.destroyed) reply = null;
    if (reply?.status === 500)
      server.log.error('a request failed', { route: route.name, error, ...traceField(call.trace) });
    if (reply !== null) server.warnOfPart(error, route.name);
  }
  finish(server, call, reply);
}

/** Refuses what is wrong with the HTTP of a request; returns true when it has answered OPTIONS. */
function answerHttp({ req, res, headers }: ApiCall, { allowed }: ServedRoute): boolean {
  if (!hasOneHost(req)) {
    // A proxy in front may take the rest of the connection for another request.
    headers.connection = 'close';
    throw refuse('bad_request', 'Bad Request: there must be one Host header');
  }
  if (allowed.includes(req.method)) return false;
  headers.allow = allowed.join(', ');
  if (req.method !== 'OPTIONS') throw refuse('method_not_allowed');
  res.writeHead(204, headers).end();
  return true;
}

/** The order of checks (D10): declared size of the body, blocked address, body, form of the key; the rest is one step of the record. */
async function answerKeyed(server: ApiServer, call: ApiCall, handle: KeyedHandler): Promise<ApiReply | null> {
  const { req, caller } = call;
  const isPost = req.method === 'POST';
  if (isPost) requireSmallBody(req, call.route?.maxBodyBytes);
  const blockedSeconds = caller.blame === null ? null : server.blocked.waitSeconds(caller.blame);
  if (blockedSeconds !== null) throw refuse('ip_blocked', undefined, blockedSeconds);
  // Not counted, or any page could have the address of its visitors blocked. Nor is its key judged, so that nobody guesses keys this way.
  if (isLoadedByOtherSite(req)) throw refuse('invalid_api_key');
  const body = isPost && !call.route?.readsBodyLate ? await readJsonBody(req, call.route?.maxBodyBytes) : noBody;
  // In hand only now: callers who never send the rest of their bodies would keep everybody else out.
  requireRoom(server);
  server.inHand++;
  try {
    return await answerComplete(server, call, body, handle);
  } catch (error) {
    if (isRefusal(error, 'invalid_api_key')) await countAuthFailure(server, call);
    throw error;
  } finally {
    server.inHand--;
  }
}

/** Answers a request that has arrived whole. */
function answerComplete(
  server: ApiServer,
  call: ApiCall,
  body: RequestBody,
  handle: KeyedHandler,
): Promise<ApiReply | null> {
  const { req, route } = call;
  const { x_api_key, ...given } = mergeParameters(call.given, body.parameters);
  call.given = given;
  const bearer = route?.takesBearer ? /^Bearer (\S+)$/i.exec(req.headers.authorization ?? '')?.[1] : undefined;
  const key = readKey(headerOf(req, 'x-api-key') || bearer || x_api_key);
  if (key === null) throw refuse('invalid_api_key');
  call.logged = key;

  const isPrefetch = route?.endpoint !== undefined && /\bprefetch\b/.test(headerOf(req, 'sec-purpose') ?? '');
  const prefetchFault = isPrefetch ? 'Bad Request: a prefetch starts nothing' : null;
  // A key in the header wins over one in the query (D11), but a parameter given twice stays a fault (D5).
  const keysFault = Array.isArray(x_api_key) ? 'Bad Request: x_api_key must be given once' : null;
  const fault = body.fault ?? prefetchFault ?? judgeQuery(req.url) ?? keysFault;
  const idle = <T>(wait: () => Promise<T>) => waitIdle(server, wait);
  if (!route?.readsBodyLate) return handle({ ...call, key, fault, idle });
  const readBody = async () => {
    const late = await idle(() => readJsonBody(req, route.maxBodyBytes));
    call.given = mergeParameters(call.given, late.parameters);
    return { given: call.given, fault: late.fault ?? fault };
  };
  return handle({ ...call, key, fault, idle, readBody });
}

/** Counts a missing or unknown key against the address of its caller (D38). */
async function countAuthFailure(server: ApiServer, call: ApiCall): Promise<void> {
  call.logged = null;
  server.metrics.auth_failures_total.inc();
  if (call.caller.blame !== null) await server.blocked.countFailure(call.caller.blame);
}

/** Refuses a request while 1,000 are in hand. */
function requireRoom({ inHand }: ApiServer): void {
  if (inHand >= maxInHand) throw refuse('unavailable');
}

async function waitIdle<T>(server: ApiServer, wait: () => Promise<T>): Promise<T> {
  server.inHand--;
  try {
    return await wait();
  } finally {
    server.inHand++;
  }
}

/** Sends the answer, counts it, and writes the line of the request log unless the record has written it. */
function finish(server: ApiServer, call: ApiCall, reply: ApiReply | null): void {
  const { req, res, route } = call;
  const seconds = (performance.now() - call.began) / 1000;
  const status = reply ? (reply.loggedStatus ?? reply.status) : res.headersSent ? res.statusCode : goneStatus;
  if (reply && !res.headersSent && !res.destroyed) send(server, call, reply);
  const label = route?.name ?? 'other';
  server.metrics.http_requests_total.inc({ route: label, status });
  server.metrics.http_request_seconds.observe({ route: label }, seconds);
  if (server.traces && call.trace) recordRequest(server.traces, call, reply, status, server.now());
  if (call.logged === null || route === null || reply?.isLogged) return;
  server.lines.add(call.logged, {
    at: server.now(),
    endpoint: `${req.method} ${route.template}`,
    status,
    duration_ms: Math.round(seconds * 1000),
    ip: call.caller.ip,
    credits: 0,
  });
}

/** Sends an answer. One that closes the connection ends behind the body of its request: a caller that still sends it would lose the answer. */
function send({ draining }: ApiServer, { req, res, headers, route, given }: ApiCall, reply: ApiReply): void {
  if (reply.status === 413 || draining.aborted) headers.connection = 'close';
  const isClosing = headers.connection === 'close' || !res.shouldKeepAlive;
  // A masked error under a file's link would be saved as the file (D85).
  const isSoft = reply.status >= 400 && !(route && route.name in openRoutes) && wantsSoftFail(given);
  const closing = isClosing && isArriving(req) ? discardBody(req) : undefined;
  sendReply(res, isSoft ? softened(reply) : reply, headers, closing);
}
