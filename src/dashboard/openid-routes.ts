import type { Request } from 'express';
import * as oidc from 'openid-client';
import type { BlockedAddresses, FindCaller } from '../api/caller-address.ts';
import type { ApiReply } from '../api/reply.ts';
import { isRefusal, Refusal, refuse } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { accountToOpen, identityOf, personIdOf, readEmail } from '../model/person.ts';
import { readPerson } from '../store/people/read-people.ts';
import { type OpenCall, type OpenRoute, openRoute } from './dashboard-app.ts';
import { views } from './dashboard-views.ts';
import type { PasskeyParts } from './passkey-routes.ts';
import { readCookie, type SessionCookies, writeCookie } from './session-cookies.ts';

interface OpenidOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Reads the client secret of now; `null` for a public client. */
  readonly clientSecret: () => string | null;
}

export interface OpenidParts extends Pick<PasskeyParts, 'store' | 'seal' | 'dashboardUrl'> {
  readonly cookies: SessionCookies;
  readonly findCaller: FindCaller;
  readonly blocked: BlockedAddresses;
  readonly log: Log;
}

/** Begun sign-in, kept sealed in a cookie of the browser: nothing of it is in the record. */
interface BegunSignIn {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly until: number;
  /** Account that the page showed from which it was begun. */
  readonly account: string;
  /** Address of the view from which it was begun; missing in a cookie of a release that kept none. */
  readonly to?: string;
}

const purpose = 'openid';
const pathOfBack = '/api/sign-in/openid/back';
const lifeMs = 10 * 60_000;
const maxAccountLength = 64;
const maxViewLength = 1_000;
const timeoutSeconds = 10;

/** Routes of the sign-in with OpenID Connect: to the provider, and back from it. Only people who were invited get in. */
export function openidRoutes(parts: OpenidParts, options: OpenidOptions): OpenRoute[] {
  const findProvider = cacheProvider(options);
  return [
    openRoute('GET', '/api/sign-in/openid', (call) =>
      orExplain(parts, call, async () => leave(parts, await findProvider(), call)),
    ),
    openRoute('GET', pathOfBack, (call) =>
      orExplain(parts, call, async () => comeBack(parts, await findProvider(), call)),
    ),
  ];
}

/** Reads the provider's document at the first sign-in, and again after a failure. */
function cacheProvider({ issuer, clientId, clientSecret }: OpenidOptions): () => Promise<oidc.Configuration> {
  let found: Promise<oidc.Configuration> | null = null;
  // The secret may change while the provider's document stays.
  const authenticate: oidc.ClientAuth = (...call) => {
    const secret = clientSecret();
    const chosen = secret === null ? oidc.None() : oidc.ClientSecretPost(secret);
    chosen(...call);
  };
  // A setting allows http for a provider on this machine alone.
  const execute = issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : [];
  return () => {
    found ??= oidc
      .discovery(new URL(issuer), clientId, undefined, authenticate, { execute, timeout: timeoutSeconds })
      .catch((error) => {
        found = null;
        throw error;
      });
    return found;
  };
}

/** Sends the browser to the provider. */
async function leave(parts: OpenidParts, provider: oidc.Configuration, { req, res }: OpenCall): Promise<null> {
  const begun: BegunSignIn = {
    state: oidc.randomState(),
    nonce: oidc.randomNonce(),
    verifier: oidc.randomPKCECodeVerifier(),
    until: parts.store.clock.now() + lifeMs,
    account: String(req.query.account ?? '').slice(0, maxAccountLength),
    to: viewOf(parts, req.query.to),
  };
  const url = oidc.buildAuthorizationUrl(provider, {
    redirect_uri: parts.dashboardUrl() + pathOfBack,
    scope: 'openid email',
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(begun.verifier),
    code_challenge_method: 'S256',
  });
  res.append('set-cookie', cookieOf(parts, parts.seal.seal(purpose, JSON.stringify(begun)), lifeMs / 1000));
  res.redirect(303, url.href);
  return null;
}

/** Takes the answer of the provider and opens a session of the person whose e-mail address it verified. */
async function comeBack(parts: OpenidParts, provider: oidc.Configuration, { req, res }: OpenCall): Promise<null> {
  const { store, cookies, findCaller } = parts;
  res.append('set-cookie', cookieOf(parts, '', 0));
  const begun = readBegun(parts, req);
  if (begun === null) throw refuse('sign_in_failed', 'The sign-in took too long: begin again');
  const tokens = await oidc.authorizationCodeGrant(provider, new URL(req.originalUrl, parts.dashboardUrl()), {
    pkceCodeVerifier: begun.verifier,
    expectedState: begun.state,
    expectedNonce: begun.nonce,
    idTokenExpected: true,
  });
  const { sub, iss, ...claimed } = tokens.claims()!;
  // Both from one place: an address of one and a verification of the other would say nothing.
  const told = claimed.email === undefined ? await oidc.fetchUserInfo(provider, tokens.access_token, sub) : claimed;
  const email = told.email_verified === true ? readEmail(told.email).value : undefined;
  const person = email === undefined ? null : await readPerson(store, email);
  if (person === null)
    throw refuse('sign_in_failed', 'Nobody was invited with an e-mail address that the provider has verified');
  const { ip } = findCaller(req.socket.remoteAddress, req.get('x-forwarded-for'));
  const identity = identityOf(provider.serverMetadata().issuer, { iss, sub });
  const proof = { identity, accountId: accountToOpen(person, begun.account), email: person.email };
  const header = await cookies.open(req, ip, personIdOf(person.email), proof);
  if (header === null)
    throw refuse('sign_in_failed', 'This e-mail address belongs to another identity of the provider');
  res.append('set-cookie', header);
  res.redirect(303, begun.to ?? '/');
  return null;
}

/** Returns the address of a view of ours; `/` in place of anything else, so that nobody is led elsewhere. */
function viewOf({ dashboardUrl }: OpenidParts, to: unknown): string {
  const base = dashboardUrl();
  if (typeof to !== 'string' || to.length > maxViewLength || !URL.canParse(to, base)) return '/';
  const { origin, pathname, search } = new URL(to, base);
  const isView = views.includes(pathname.replace(/^\/jobs\/[\w-]+$/, '/jobs/:id'));
  return origin === new URL(base).origin && isView ? pathname + search : '/';
}

/** Returns the sign-in that a browser has begun here and may still end; `null` for none. */
function readBegun(parts: OpenidParts, req: Request): BegunSignIn | null {
  const text = openBegun(parts, req);
  const begun = text === null ? null : (JSON.parse(text) as BegunSignIn);
  return begun !== null && begun.until > parts.store.clock.now() ? begun : null;
}

/** Returns the sign-in that a browser has begun here, however long ago; `null` for none. */
function openBegun(parts: OpenidParts, req: Request): string | null {
  return parts.seal.open(purpose, readCookie(req.get('cookie'), cookieNameOf(parts)) ?? '');
}

/** Behind https a name that browsers take from this host alone: another host of the domain could plant a sign-in that it has begun. */
function cookieNameOf({ dashboardUrl }: OpenidParts): string {
  return dashboardUrl().startsWith('https:') ? '__Host-trawl-openid' : 'trawl-openid';
}

/** Lax, because the provider sends the browser back with a request of its own. */
function cookieOf(parts: OpenidParts, value: string, seconds: number): string {
  return writeCookie(cookieNameOf(parts), value, seconds);
}

/** Leads a person whose sign-in failed back to the page, which says so; the log knows why. */
async function orExplain(
  parts: OpenidParts,
  { req, res }: OpenCall,
  work: () => Promise<null>,
): Promise<ApiReply | null> {
  const { blame } = parts.findCaller(req.socket.remoteAddress, req.get('x-forwarded-for'));
  const isBlocked = blame !== null && parts.blocked.waitSeconds(blame) !== null;
  try {
    if (isBlocked) throw refuse('ip_blocked');
    return await work();
  } catch (error) {
    // A provider that is away blames nobody, nor does a client secret that it does not know: the operator may be changing it.
    // Any page can have its visitors load the way back; only one who has begun a sign-in here tries something.
    const isBlamed = (error instanceof Refusal || isForged(error)) && openBegun(parts, req) !== null;
    if (isBlamed && !isBlocked && blame !== null) await parts.blocked.countFailure(blame);
    const isOurs = error instanceof Refusal;
    parts.log[isOurs ? 'debug' : 'warn']('a sign-in with OpenID Connect failed', { error });
    res.redirect(303, `/sign-in?failed=${reasonOf(parts, req, error)}`);
    return null;
  }
}

function isForged(error: unknown): boolean {
  return error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant';
}

/** Returns the word by which the page knows why a sign-in failed. */
function reasonOf(parts: OpenidParts, req: Request, error: unknown): string {
  if (isRefusal(error, 'ip_blocked')) return 'blocked';
  if (error instanceof oidc.AuthorizationResponseError) return 'denied';
  if (error instanceof Refusal) return readBegun(parts, req) === null ? 'late' : 'openid';
  const isOfOther = error instanceof oidc.ClientError && error.code === 'OAUTH_INVALID_RESPONSE';
  return isForged(error) || isOfOther ? 'late' : 'away';
}
