import { randomUUID } from 'node:crypto';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { wantsSoftFail } from '../model/request-parameters.ts';
import type { FreeLines } from '../store/log/write-lines.ts';
import type { Handler } from './ask.ts';
import type { Blocked } from './blocked-addresses.ts';
import { readBody } from './body.ts';
import type { FindPeer, Peer } from './caller-address.ts';
import type { ReadKey } from './keys.ts';
import { errorOf, type Reply, refusal, send, softened } from './reply.ts';
import { hasOneHost, judgeQuery } from './request-syntax.ts';
import { allowed, type Route, type RouteName, routes } from './routes.ts';

/** What stands in front of every route. */
export interface Gate {
  readonly blocked: Blocked;
  readonly peerOf: FindPeer;
  readonly readKey: ReadKey;
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
  readonly requestId: string;
  given: Given;
  keyId: string | null;
  /** Whether the connection ends with the answer. */
  isLast: boolean;
}

const requestsMost = 1000;
const requestIdForm = /^[\w.-]{1,64}$/;
const notDecodable = 'Bad Request: the path has a percent sign that does not encode UTF-8';
/** What is logged when the caller was gone before an answer. */
const goneStatus = 499;

/** The public API: every route under all its paths, behind the same checks. */
export function makeApp(gate: Gate, handlers: Handlers): Express {
  const app = express();
  // Each of these costs time on every request, and none is needed here.
  app.disable('etag').disable('x-powered-by').set('query parser', 'simple');
  app.set('strict routing', true).set('case sensitive routing', true);
  const crowd = makeCrowd();
  const other = { line: null, count: makeCount(gate.metrics, 'other') };
  // The router tries one path after the other: what is asked most comes first.
  for (const route of new Set<Route>([routes.job, routes.video, routes.audio, ...Object.values(routes)])) {
    const station = makeStation(gate, route, handlers[route.name as RouteName] as Handler);
    app.all([...route.paths], (req, res) => serve(gate, crowd, station, req, res));
  }
  const answerOther = (req: Request, res: Response, reply: Reply) => {
    const passage = begin(gate, req);
    finish(gate, other, passage, res, soften(passage.given, reply));
  };
  app.use((req: Request, res: Response) => answerOther(req, res, refusal('not_found')));
  // Express passes on here what it cannot decode, and would show it with its place in our code.
  app.use((error: unknown, req: Request, res: Response, _next: NextFunction) => {
    if (error instanceof URIError) return answerOther(req, res, refusal('bad_request', notDecodable));
    gate.log.error('a request failed', { error });
    res.destroy();
  });
  return app;
}

/** The requests in hand, without those that only wait for something. */
interface Crowd {
  inHand: number;
  readonly idle: <T>(work: () => Promise<T>) => Promise<T>;
}

function makeCrowd(): Crowd {
  const crowd: Crowd = {
    inHand: 0,
    async idle(work) {
      crowd.inHand--;
      try {
        return await work();
      } finally {
        crowd.inHand++;
      }
    },
  };
  return crowd;
}

/** What is known of a route before any request comes: none of it is made again for each. */
interface Station {
  readonly route: Route;
  readonly handler: Handler;
  readonly methods: ReadonlySet<string>;
  readonly allow: string;
  /** The path in the request log; `null` for what has none. */
  readonly line: string | null;
  readonly count: Count;
}

type Count = (status: number, seconds: number) => void;

function makeStation(gate: Gate, route: Route, handler: Handler): Station {
  const methods = allowed(route);
  return {
    route,
    handler,
    methods: new Set(methods),
    allow: methods.filter((method) => method !== 'OPTIONS').join(', '),
    line: route.paths[0].replaceAll(/:(\w+)/g, '{$1}'),
    count: makeCount(gate.metrics, route.name),
  };
}

function makeCount(metrics: Metrics, route: string): Count {
  const seconds = metrics.http_request_seconds.labels({ route });
  const counters = new Map<number, { inc(): void }>();
  return (status, took) => {
    const counter = counters.get(status) ?? metrics.http_requests_total.labels({ route, status: String(status) });
    counters.set(status, counter);
    counter.inc();
    seconds.observe(took);
  };
}

async function serve(gate: Gate, crowd: Crowd, station: Station, req: Request, res: Response): Promise<void> {
  const passage = begin(gate, req);
  let reply: Reply | null;
  crowd.inHand++;
  try {
    if (crowd.inHand > requestsMost) throw refuse('unavailable');
    reply = await pass(gate, crowd, station, passage, req, res);
    if (reply && isUnknownKey(reply) && passage.peer.blame) await gate.blocked.fail(passage.peer.blame);
  } catch (error) {
    // Whatever failed for a caller who has gone is no failure of ours.
    reply = res.destroyed ? null : errorOf(error);
    if (reply?.status === 500) gate.log.error('a request failed', { route: station.route.name, error });
  } finally {
    crowd.inHand--;
  }
  // A masked error under a file's link would be saved as the file (D85).
  finish(gate, station, passage, res, reply && (station.route.isOpen ? reply : soften(passage.given, reply)));
}

/** The order of checks (D10): size, blocked address, key; the record judges the rest in one step. */
async function pass(
  gate: Gate,
  crowd: Crowd,
  station: Station,
  passage: Passage,
  req: Request,
  res: Response,
): Promise<Reply | null> {
  const { route, handler } = station;
  if (!hasOneHost(req)) {
    // Nobody knows what else the caller and those before us take for a request.
    passage.isLast = true;
    return refusal('bad_request', 'Bad Request: there must be one Host header');
  }
  const headers = headersOf(passage);
  const refusedMethod = judgeMethod(station, headers, req, res);
  if (refusedMethod !== undefined) return refusedMethod;
  if (route.isOpen) {
    for (let n = 0; n < headers.length; n += 2) res.setHeader(headers[n] ?? '', headers[n + 1] ?? '');
    // A download may take as long as its caller reads: it is not in hand meanwhile.
    return crowd.idle(() => (handler as unknown as Handlers['files'])(req, res));
  }

  const body = req.method === 'POST' ? await readBody(req) : null;
  if (body && 'parameters' in body) passage.given = { ...passage.given, ...body.parameters };

  const wait = passage.peer.blame === null ? null : gate.blocked.waitSeconds(passage.peer.blame);
  if (wait !== null) return refusal('ip_blocked', undefined, wait);

  const { x_api_key } = passage.given;
  const key = gate.readKey(req.headers['x-api-key'] || x_api_key);
  if (key === null) return refusal('invalid_api_key');
  passage.keyId = key.id;

  const purpose = req.headers['sec-purpose'];
  const isPrefetch = route.endpoint !== undefined && purpose !== undefined && /\bprefetch\b/.test(String(purpose));
  const prefetch = isPrefetch ? 'Bad Request: a prefetch starts nothing' : null;
  const fault = body && 'fault' in body ? body.fault : (prefetch ?? judgeQuery(req.url));
  const { peer, began } = passage;
  const given = x_api_key === undefined ? passage.given : withoutKey(passage.given);
  return handler({ req, res, key, given, fault, ip: peer.ip, headers, began, idle: crowd.idle });
}

/** The answer to a method that the route does not serve; `null` when OPTIONS was answered, undefined to go on. */
function judgeMethod(
  { methods, allow }: Station,
  headers: readonly string[],
  req: Request,
  res: Response,
): Reply | null | undefined {
  if (req.method === 'OPTIONS') {
    res.writeHead(204, [...headers, 'allow', allow]).end();
    return null;
  }
  if (methods.has(req.method)) return undefined;
  return { ...refusal('method_not_allowed'), headers: { 'x-error-code': 'method_not_allowed', allow } };
}

function begin(gate: Gate, req: Request): Passage {
  const asked = req.headers['x-request-id'];
  const requestId = typeof asked === 'string' && requestIdForm.test(asked) ? asked : randomUUID();
  const forwarded = req.headers['x-forwarded-for'];
  const peer = gate.peerOf(req.socket.remoteAddress, Array.isArray(forwarded) ? forwarded.join(',') : forwarded);
  const isLast = gate.isDraining();
  const given = req.url.includes('?') ? (req.query as Given) : {};
  return { peer, began: performance.now(), requestId, given, keyId: null, isLast };
}

/** Headers that every answer has: names and values by turns. */
function headersOf({ requestId, isLast }: Passage): string[] {
  const headers = ['x-request-id', requestId, 'cache-control', 'no-store', 'x-content-type-options', 'nosniff'];
  if (isLast) headers.push('connection', 'close');
  return headers;
}

function withoutKey({ x_api_key: _key, ...given }: Given): Given {
  return given;
}

/** Answers, counts, and writes the line of the request log where the record has not done so. */
function finish(
  gate: Gate,
  { line, count }: Pick<Station, 'line' | 'count'>,
  passage: Passage,
  res: Response,
  reply: Reply | null,
): void {
  const took = performance.now() - passage.began;
  // The rest of a body that is too large is not read; who stops answers nothing more.
  if (reply && ((reply.masked ?? reply.status) === 413 || gate.isDraining())) passage.isLast = true;
  if (reply) send(res, reply, headersOf(passage));
  const status = reply?.masked ?? reply?.status ?? (res.headersSent ? res.statusCode : goneStatus);
  count(status, took / 1000);
  if (passage.keyId === null || line === null || reply?.isLogged || (reply && isUnknownKey(reply))) return;
  gate.lines.add(passage.keyId, {
    at: gate.now(),
    endpoint: `${res.req.method} ${line}`,
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
