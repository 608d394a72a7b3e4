import { isUtf8 } from 'node:buffer';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { FindCaller } from '../api/caller-address.ts';
import type { KeylessLimit } from '../api/keyless-limit.ts';
import { warnOfParts } from '../api/part-warnings.ts';
import { type ApiReply, errorReply, sendReply } from '../api/reply.ts';
import { hasBody, repeatedName } from '../api/request-syntax.ts';
import { isRefusal, refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { countInWindows } from '../base/window-count.ts';
import { type Changeable, mayChange } from '../model/person.ts';
import type { RecordStore } from '../store/script.ts';
import type { SessionCookies, SignedIn } from './session-cookies.ts';

/** A route of the pages' own JSON; those that change something say what. */
export interface DashboardRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Subject that the person must have the right to change; `own` is what everybody may: their session and password. */
  readonly changes?: Changeable | 'own';
  readonly handle: (call: DashboardCall) => Promise<ApiReply | null>;
}

export interface OpenRoute extends Omit<DashboardRoute, 'changes' | 'handle'> {
  readonly handle: (call: OpenCall) => Promise<ApiReply | null>;
}

export interface OpenCall {
  readonly req: Request;
  readonly res: Response;
  /** Members of the JSON body. */
  readonly given: Readonly<Record<string, unknown>>;
}

export interface DashboardCall extends OpenCall {
  readonly signedIn: SignedIn;
  /** Account that the session shows. */
  readonly accountId: string;
  /** The record, which notes the person as the author of changes. */
  readonly store: RecordStore;
  /** Judges the session again: true while it lasts and shows this account. */
  readonly sessionLasts: () => Promise<boolean>;
}

/** Returns a route that shows something to whoever has a session. */
export function readRoute(path: string, handle: DashboardRoute['handle']): DashboardRoute {
  return { method: 'GET', path, handle };
}

export function changeRoute(
  method: Exclude<DashboardRoute['method'], 'GET'>,
  path: string,
  changes: NonNullable<DashboardRoute['changes']>,
  handle: DashboardRoute['handle'],
): DashboardRoute {
  return { method, path, changes, handle };
}

export function openRoute(method: OpenRoute['method'], path: string, handle: OpenRoute['handle']): OpenRoute {
  return { method, path, handle };
}

/** Counts a change of a person; throws `rate_limited` when there were too many. */
type ChangeLimit = (personId: string) => void;

export type DashboardPart = (app: Express) => void;

interface DashboardParts {
  readonly routes: readonly DashboardRoute[];
  readonly openRoutes: readonly OpenRoute[];
  /** Handlers of other bodies and answers: what a payment provider posts, files of the pages. */
  readonly extend: DashboardPart;
  readonly cookies: SessionCookies;
  readonly store: RecordStore;
  readonly findCaller: FindCaller;
  /** Stands before every route that takes something without a session. */
  readonly limitKeyless: KeylessLimit;
  /** URL at which owners reach the dashboard. */
  readonly dashboardUrl: () => string;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'http_requests_total' | 'http_request_seconds'>;
}

const maxBody = '16kb';
/** Requests that were not answered yet, event streams among them. */
const maxInHand = 3_000;
const changesMs = 86_400_000;
const maxChanges = 500;
const tooManyChanges = `You made ${maxChanges} changes today, which is the limit: try again tomorrow`;
const safeMethods = ['GET', 'HEAD', 'OPTIONS'];
/** No script, style or connection of another origin, nothing inline, and no frame around it. */
const policy = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data: https:", "font-src 'self'"],
  ...["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
].join('; ');
const headers = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
};

/** Makes the dashboard: the JSON of its pages behind one order of checks, and what `extend` adds. */
export function makeDashboard(parts: DashboardParts): Express {
  const app = express();
  app.disable('etag').disable('x-powered-by').set('query parser', 'simple');
  app.set('strict routing', true).set('case sensitive routing', true);
  const warnOfPart = warnOfParts(parts.log);
  let inHand = 0;
  app.use((req, res, next) => {
    res.set(headers);
    measure(parts, req, res);
    if (inHand >= maxInHand) return sendReply(res, errorReply(refuse('unavailable')));
    inHand++;
    res.once('close', () => inHand--);
    next();
  });
  parts.extend(app);
  app.use('/api', express.json({ limit: maxBody, verify: judgeBody }), requireObject);
  for (const route of parts.openRoutes) {
    add(app, route, async (call) => {
      requireOwnOrigin(parts, call.req);
      if (!safeMethods.includes(route.method)) parts.limitKeyless(call.req, call.res);
      return route.handle(call);
    });
  }
  const limit = limitChanges();
  for (const route of parts.routes) add(app, route, (call) => answerSignedIn(parts, route, call, limit));
  app.use((_req, res) => sendReply(res, errorReply(refuse('not_found'))));
  app.use((error: unknown, req: Request, res: Response, _next: NextFunction) => failOutside(parts, error, req, res));
  return app;

  function add(
    to: Express,
    { method, path }: Pick<DashboardRoute, 'method' | 'path'>,
    answer: (call: OpenCall) => Promise<ApiReply | null>,
  ) {
    const verb = method.toLowerCase() as Lowercase<DashboardRoute['method']>;
    to[verb](path, async (req: Request, res: Response) => {
      const reply = await answer({ req, res, given: req.body ?? {} }).catch((error) => {
        const refused = errorReply(error);
        if (refused.status === 500) parts.log.error('a request of the dashboard failed', { path, error });
        // A page that is gone explains any failure.
        if (!res.destroyed) warnOfPart(error, path);
        return refused;
      });
      res.locals.route = path;
      if (reply === null) return;
      // The beginning of another answer was sent already.
      if (res.headersSent) res.destroy();
      else sendReply(res, reply);
    });
  }
}

/** The order of checks: own origin, session, account, token against forged requests, right, number of changes. */
async function answerSignedIn(
  parts: DashboardParts,
  { changes, path, handle }: DashboardRoute,
  call: OpenCall,
  limit: ChangeLimit,
): Promise<ApiReply | null> {
  requireOwnOrigin(parts, call.req);
  const signedIn = await parts.cookies.read(call.req);
  if (signedIn === null) throw refuse('sign_in_required');
  if (changes !== 'own') requireShownAccount(call.req, signedIn);
  if (!safeMethods.includes(call.req.method) && !signedIn.isCsrfToken(call.req.get('x-csrf-token'))) {
    throw refuse('forbidden', 'This request does not come from the page that you signed in to: load it again');
  }
  const { role, session } = signedIn;
  if (changes !== undefined && changes !== 'own' && (role === null || !mayChange(role, changes))) {
    throw refuse('forbidden', `Your role in this account, ${role ?? 'none'}, may not change this`);
  }
  // Jobs leave no entry in the audit log. Removing something and signing out are never refused.
  const takesAway = call.req.method === 'DELETE' || path === '/api/sign-out';
  if (changes !== undefined && changes !== 'jobs' && !takesAway) limit(signedIn.person.id);
  const { ip } = parts.findCaller(call.req.socket.remoteAddress, call.req.get('x-forwarded-for'));
  const actor = { via: 'dashboard', who: signedIn.person.email, from: ip } as const;
  const accountId = role === null ? '' : session.account;
  const sessionLasts = async () => {
    const found = await parts.cookies.read(call.req);
    return found !== null && found.role !== null && found.session.account === accountId;
  };
  return handle({ ...call, signedIn, accountId, store: { ...parts.store, actor }, sessionLasts });
}

/** Refuses a request that changes something and was not sent by a page of the dashboard. */
function requireOwnOrigin({ dashboardUrl }: DashboardParts, req: Request): void {
  if (safeMethods.includes(req.method)) return;
  const own = new URL(dashboardUrl()).origin;
  if (req.get('origin') === own) return;
  throw refuse('forbidden', `The dashboard takes this only from its own pages at ${own}`);
}

/** Refuses a request of a page that shows another account than its session does since: another tab has changed it. Links name it in the query. */
function requireShownAccount(req: Request, { session }: SignedIn): void {
  const shown = req.get('x-account') ?? req.query.account;
  if (shown !== undefined && shown !== session.account) throw refuse('other_account');
}

/** Refuses an array, and a body that is not declared to be JSON, which the parser leaves unread. */
function requireObject(req: Request, res: Response, next: NextFunction): void {
  const isUnread = req.body === undefined && hasBody(req);
  if (!isUnread && !Array.isArray(req.body)) {
    next();
    return;
  }
  const wanted = isUnread ? 'of type application/json' : 'a JSON object';
  sendReply(res, errorReply(refuse('bad_request', `Bad Request: the body must be ${wanted}`)));
}

/** Refuses bytes that the parser would replace by U+FFFD, and a member that stands twice, of which it would take the last. */
function judgeBody(_req: unknown, _res: unknown, body: Buffer): void {
  if (!isUtf8(body)) throw new Error('the body is not UTF-8');
  if (body.length === 0) return;
  const text = body.toString();
  // Nobody has signed in yet, and the next look takes the square of the length of a text that is no JSON.
  JSON.parse(text);
  const name = repeatedName(text, { has: () => true });
  if (name !== null)
    throw refuse('bad_request', `Bad Request: ${name.slice(0, 50)} must be a single value, given once`);
}

function measure({ metrics }: DashboardParts, req: Request, res: Response): void {
  const began = performance.now();
  res.once('close', () => {
    const route = `dashboard ${res.locals.route === undefined ? 'pages' : 'api'}`;
    metrics.http_requests_total.inc({ route, status: res.statusCode });
    // A stream lasts as long as its page is open.
    if (!req.path.endsWith('/events')) {
      metrics.http_request_seconds.observe({ route }, (performance.now() - began) / 1000);
    }
  });
}

/** Answers what a middleware refused: a body that is too large or no JSON, a path that cannot be decoded. */
function failOutside({ log }: DashboardParts, error: unknown, req: Request, res: Response): void {
  const status = (error as { status?: number }).status ?? 500;
  if (status >= 500) log.error('a request of the dashboard failed outside its route', { path: req.path, error });
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const isCallers = status >= 400 && status < 500 && !isRefusal(error, 'bad_request');
  const wrong = error instanceof URIError ? 'the address cannot be decoded' : 'the body must be JSON in UTF-8';
  const refused = isCallers ? refuse('bad_request', `Bad Request: ${wrong}`) : error;
  sendReply(res, errorReply(status === 413 ? refuse('payload_too_large') : refused));
}

/** Counts the changes of each person in the memory of this process: 500 a day, so that no one fills the audit log of an account. */
function limitChanges(): ChangeLimit {
  const countPerson = countInWindows(changesMs);
  return (personId) => {
    if (countPerson(personId).count > maxChanges) throw refuse('rate_limited', tooManyChanges, changesMs / 1000);
  };
}
