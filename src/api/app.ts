import { randomUUID } from 'node:crypto';
import express, { type Express, type Request, type Response } from 'express';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { readKey } from '../model/key.ts';
import { wantsSoftFail } from '../model/request.ts';
import type { FreeLines } from '../store/lines.ts';
import type { Peer } from './address.ts';
import { errorOf, type Reply, refusal, send, softened } from './answer.ts';
import type { Handler } from './ask.ts';
import type { Blocked } from './blocked.ts';
import { readBody } from './body.ts';
import { allowed, type Route, type RouteName, routes } from './routes.ts';

/** What stands in front of every route. */
export interface Gate {
  readonly blocked: Blocked;
  readonly peerOf: (remote: string | undefined, forwarded: string | undefined) => Peer;
  readonly lines: FreeLines;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly now: () => number;
  /** Whether it is about to stop: then every answer closes its connection. */
  readonly isDraining: () => boolean;
}

/** A handler for a route, or one for each of its methods. Routes without a key answer by themselves. */
export type Handlers = {
  readonly [N in RouteName]: (typeof routes)[N] extends { isOpen: true }
    ? (req: Request, res: Response) => Promise<Reply | null>
    : Handler;
};

type Given = Readonly<Record<string, unknown>>;

/** One request on its way through the checks. */
interface Passage {
  readonly peer: Peer;
  readonly began: number;
  given: Given;
  keyId: string | null;
}

const requestsMost = 1000;
const requestIdForm = /^[\w.-]{1,64}$/;

/** The public API: every route under all its paths, behind the same checks. */
export function makeApp(gate: Gate, handlers: Handlers): Express {
  const app = express();
  // Each of these costs time on every request, and none is needed here.
  app.disable('etag').disable('x-powered-by').set('query parser', 'simple').set('strict routing', true);
  let inHand = 0;
  for (const route of Object.values(routes) as Route[]) {
    const handler = handlers[route.name as RouteName] as Handler;
    app.all([...route.paths], async (req, res) => {
      inHand++;
      try {
        await serve(gate, route, handler, req, res, inHand > requestsMost);
      } finally {
        inHand--;
      }
    });
  }
  app.use((req: Request, res: Response) => {
    const passage = begin(gate, req, res);
    finish(gate, { name: 'other' }, passage, res, soften(passage.given, refusal('not_found')));
  });
  return app;
}

async function serve(
  gate: Gate,
  route: Route,
  handler: Handler,
  req: Request,
  res: Response,
  isFull: boolean,
): Promise<void> {
  const passage = begin(gate, req, res);
  let reply: Reply | null;
  try {
    if (isFull) throw refuse('unavailable');
    reply = await pass(gate, route, handler, passage, req, res);
    if (reply && isUnknownKey(reply) && passage.peer.blame) await gate.blocked.fail(passage.peer.blame);
  } catch (error) {
    reply = errorOf(error);
    if (reply.status === 500) gate.log.error('a request failed', { route: route.name, error });
  }
  finish(gate, route, passage, res, reply && soften(passage.given, reply));
}

/** The order of checks (D10): size, blocked address, key; the record judges the rest in one step. */
async function pass(
  gate: Gate,
  route: Route,
  handler: Handler,
  passage: Passage,
  req: Request,
  res: Response,
): Promise<Reply | null> {
  const refusedMethod = judgeMethod(route, req, res);
  if (refusedMethod !== undefined) return refusedMethod;
  if (route.isOpen) return (handler as unknown as Handlers['files'])(req, res);

  const body = req.method === 'POST' ? await readBody(req) : { parameters: {} };
  const parameters = 'parameters' in body ? body.parameters : {};
  passage.given = { ...passage.given, ...parameters };

  const wait = passage.peer.blame === null ? null : gate.blocked.waitSeconds(passage.peer.blame);
  if (wait !== null) return refusal('ip_blocked', undefined, wait);

  const { x_api_key, ...given } = passage.given;
  const key = readKey(req.headers['x-api-key'] || x_api_key);
  if (key === null) return refusal('invalid_api_key');
  passage.keyId = key.id;

  const isPrefetch = route.endpoint !== undefined && /\bprefetch\b/.test(String(req.headers['sec-purpose'] ?? ''));
  const fault = 'fault' in body ? body.fault : isPrefetch ? 'Bad Request: a prefetch starts nothing' : null;
  return handler({ req, res, key, given, fault, ip: passage.peer.ip, began: passage.began });
}

/** The answer to a method that the route does not serve; `null` when OPTIONS was answered, undefined to go on. */
function judgeMethod(route: Route, req: Request, res: Response): Reply | null | undefined {
  const methods = allowed(route);
  const allow = methods.filter((method) => method !== 'OPTIONS').join(', ');
  if (req.method === 'OPTIONS') {
    res.writeHead(204, { allow }).end();
    return null;
  }
  if (methods.includes(req.method)) return undefined;
  return { ...refusal('method_not_allowed'), headers: { 'x-error-code': 'method_not_allowed', allow } };
}

function begin(gate: Gate, req: Request, res: Response): Passage {
  const asked = req.headers['x-request-id'];
  res.setHeader('x-request-id', typeof asked === 'string' && requestIdForm.test(asked) ? asked : randomUUID());
  res.setHeader('cache-control', 'no-store');
  res.setHeader('x-content-type-options', 'nosniff');
  if (gate.isDraining()) res.setHeader('connection', 'close');
  const forwarded = req.headers['x-forwarded-for'];
  const peer = gate.peerOf(req.socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join(',') : forwarded);
  if (peer.isStrayProxy) warnOnce(gate.log);
  return { peer, began: performance.now(), given: req.query as Given, keyId: null };
}

/** Answers, counts, and writes the line of the request log where the record has not done so. */
function finish(
  gate: Gate,
  route: Pick<Route, 'name'> | Route,
  passage: Passage,
  res: Response,
  reply: Reply | null,
): void {
  const took = performance.now() - passage.began;
  if (reply) {
    if (res.req.method === 'POST' && reply.masked === undefined && reply.status === 413)
      res.setHeader('connection', 'close');
    send(res, reply);
  }
  const status = reply?.masked ?? reply?.status ?? res.statusCode;
  gate.metrics.http_requests_total.inc({ route: route.name, status: String(status) });
  gate.metrics.http_request_seconds.observe({ route: route.name }, took / 1000);
  if (passage.keyId === null || reply?.isLogged || (reply && isUnknownKey(reply)) || !('paths' in route)) return;
  gate.lines.add(passage.keyId, {
    at: gate.now(),
    endpoint: `${res.req.method} ${route.paths[0].replaceAll(/:(\w+)/g, '{$1}')}`,
    status,
    duration_ms: Math.round(took),
    ip: passage.peer.ip,
    credits: 0,
  });
}

function soften(given: Given, reply: Reply): Reply {
  return reply.status >= 400 && wantsSoftFail(given) ? softened(reply) : reply;
}

function isUnknownKey(reply: Reply): boolean {
  return reply.headers?.['x-error-code'] === 'invalid_api_key';
}

let isWarned = false;

function warnOnce(log: Log): void {
  if (isWarned) return;
  isWarned = true;
  log.warn('a private address forwards requests of others but is not in TRAWL_TRUSTED_PROXIES: it is never blocked');
}
