import { randomBytes } from 'node:crypto';
import type { Request } from 'express';
import type { ApiReply } from '../api/reply.ts';
import { nullWhen, refuse } from '../base/errors.ts';
import type { Metrics } from '../base/metrics.ts';
import { relyingParty } from '../model/passkey.ts';
import {
  accountToOpen,
  mailedLinkPurpose,
  makePersonSecret,
  personIdOf,
  readEmail,
  readPassword,
  readPersonSecret,
  roleIn,
} from '../model/person.ts';
import { writeTime } from '../model/timestamp.ts';
import { findAccount, readNames } from '../store/accounts/read-accounts.ts';
import { endSession, moveSession, setPassword } from '../store/people/change-session.ts';
import { countSignIn, takeSignInBack } from '../store/people/count-sign-in.ts';
import { mailSignInLink } from '../store/people/mail-sign-in-link.ts';
import { listPasskeys } from '../store/people/passkeys.ts';
import { listSessions, readPerson, readPersonById } from '../store/people/read-people.ts';
import type { RecordStore } from '../store/script.ts';
import {
  changeRoute,
  type DashboardCall,
  type DashboardRoute,
  type OpenCall,
  type OpenRoute,
  openRoute,
  readRoute,
} from './dashboard-app.ts';
import { requireRead, requireText } from './given-values.ts';
import type { OpenidParts } from './openid-routes.ts';
import { type PasskeyParts, readPasskeySignIn, scopeOf } from './passkey-routes.ts';
import { hashPassword, isPassword } from './password-hash.ts';

interface SignInParts extends PasskeyParts, OpenidParts {
  /** A mail server brings sign-in links. */
  readonly hasMailer: boolean;
  readonly metrics: Pick<Metrics, 'auth_failures_total'>;
}

/** Requests for a link that were answered and are not finished; more are refused. */
const maxAskedLinks = 100;
/** Sign-ins with one e-mail address in a window that begins with the first; those that succeed are taken back. */
const maxFailuresOfEmail = 10;
const emailWindowMs = 15 * 60_000;
const emailSentence = 'Too many failed sign-ins with this e-mail address: try again later';
const passkeyFailed = 'The sign-in failed: this passkey is not known here, or it took too long: try again';

export function signInRoutes(parts: SignInParts): { open: OpenRoute[]; signedIn: DashboardRoute[] } {
  const { store, cookies } = parts;
  return {
    open: [
      openRoute('POST', '/api/sign-in', (call) => signIn(parts, call)),
      openRoute('POST', '/api/sign-in/forgotten', mailLinks(parts)),
      openRoute('GET', '/api/sign-in', async () => showWays(parts)),
    ],
    signedIn: [
      readRoute('/api/session', (call) => showSession(parts, call)),
      changeRoute('POST', '/api/session/account', 'own', (call) => changeAccount(store, call)),
      changeRoute('POST', '/api/password', 'own', (call) => changePassword(call)),
      readRoute('/api/sessions', (call) => showSessions(store, call)),
      changeRoute('DELETE', '/api/sessions/:name', 'own', (call) => revoke(store, call)),
      changeRoute('POST', '/api/sign-out', 'own', async ({ res, signedIn }) => {
        await endSession(store, nameOf(signedIn));
        res.append('set-cookie', cookies.clear());
        return { status: 200, body: { signed_out: true } };
      }),
    ],
  };
}

/** Ways to sign in besides a link and a password. */
function showWays({ hasOpenid, hasMailer, dashboardUrl }: SignInParts): ApiReply {
  const passkeys = relyingParty(dashboardUrl()) !== null;
  return { status: 200, body: { openid: hasOpenid, passkeys, mail: hasMailer } };
}

/**
 * Mails a link to a person who has lost their password. The answer comes before the record is asked: neither its words nor its time tell
 * whether anybody has the address.
 */
function mailLinks(parts: SignInParts): OpenRoute['handle'] {
  let asked = 0;
  return async ({ req, given }) => {
    if (!parts.hasMailer)
      throw refuse('not_found', 'No mail server is configured: ask an owner of the account or the operator');
    requireUnblocked(parts, req);
    const email = requireRead(readEmail(requireText(given, 'email', 500)));
    if (asked >= maxAskedLinks) throw refuse('unavailable');
    asked++;
    void mailLink(parts, email)
      .catch((error) => parts.log.error('a sign-in link that somebody asked for could not be mailed', { error }))
      .finally(() => asked--);
    return { status: 202, body: { mailed_if_known: true } };
  };
}

async function mailLink({ store, seal }: SignInParts, email: string): Promise<void> {
  const person = await readPerson(store, email);
  const secret = makePersonSecret(personIdOf(email), randomBytes(32));
  const accountId = person === null ? '' : accountToOpen(person);
  await mailSignInLink(store, { email, accountId, secret, sealed: seal.seal(mailedLinkPurpose, secret) });
}

/** Returns the address of a caller unless it is blocked. */
function requireUnblocked({ findCaller, blocked }: SignInParts, req: Request) {
  const caller = findCaller(req.socket.remoteAddress, req.get('x-forwarded-for'));
  const seconds = caller.blame === null ? null : blocked.waitSeconds(caller.blame);
  if (seconds !== null) throw refuse('ip_blocked', undefined, seconds);
  return caller;
}

/** Opens a session by a link, a passkey or a password; whatever is wrong with one of them, the answer is the same. */
async function signIn(parts: SignInParts, call: OpenCall): Promise<ApiReply> {
  const { req, res, given } = call;
  const { ip } = requireUnblocked(parts, req);
  const open = 'token' in given ? openByToken : 'passkey' in given ? openByPasskey : openByPassword;
  const opened = await open(parts, call, ip);
  if (opened === null) {
    parts.metrics.auth_failures_total.inc();
    // Failures of others may have blocked the address meanwhile: this one makes that block no longer.
    const { blame } = requireUnblocked(parts, req);
    if (blame !== null) await parts.blocked.countFailure(blame);
    throw refuse('sign_in_failed', open === openByPasskey ? passkeyFailed : undefined);
  }
  res.append('set-cookie', opened);
  return { status: 200, body: { signed_in: true } };
}

async function openByToken({ cookies }: SignInParts, { req, given }: OpenCall, ip: string) {
  const link = readPersonSecret(requireText(given, 'token', 500));
  return link && cookies.open(req, ip, link.personId, { linkHash: link.secretHash });
}

async function openByPasskey(parts: SignInParts, { req, given }: OpenCall, ip: string) {
  const { store, cookies } = parts;
  const signed = await readPasskeySignIn(parts, given.passkey);
  const person = signed && (await readPersonById(store, signed.personId));
  if (signed === null || person === null) return null;
  const { personId, ...proof } = signed;
  return cookies.open(req, ip, personId, { ...proof, accountId: accountToOpen(person, req.get('x-account')) });
}

async function openByPassword({ store, cookies, log }: SignInParts, { req, given }: OpenCall, ip: string) {
  const email = requireText(given, 'email', 500);
  const password = requireText(given, 'password', 500);
  const { value } = readEmail(email);
  const personId = personIdOf(value ?? '');
  // Counted before the password is verified, so that guesses at the same moment count too.
  const { count, leftMs } = await countSignIn(store, personId, emailWindowMs);
  if (count > maxFailuresOfEmail) throw refuse('rate_limited', emailSentence, Math.ceil(leftMs / 1000));
  const person = value === undefined ? null : await readPerson(store, value);
  if (!(await isPassword(password, person?.password ?? '')) || person === null) return null;
  const accountId = accountToOpen(person, req.get('x-account'));
  const header = await cookies.open(req, ip, person.id, { password: person.password, accountId });
  if (header === null) return null;
  await takeSignInBack(store, personId).catch((error) =>
    log.warn('a sign-in that succeeded still counts as failed', { error }),
  );
  return header;
}

async function showSession(
  { store, hasOpenid }: SignInParts,
  { signedIn, accountId }: DashboardCall,
): Promise<ApiReply> {
  const { person, role, csrf } = signedIn;
  const ids = Object.keys(person.roles);
  const [names, passkeys] = await Promise.all([
    readNames(store, accountId === '' || ids.includes(accountId) ? ids : [...ids, accountId]),
    listPasskeys(store, person.id, scopeOf(signedIn)),
  ]);
  const own = names.filter(({ id }) => ids.includes(id));
  const shown = names.find(({ id }) => id === accountId);
  const ways = {
    has_password: person.password !== '',
    has_passkey: passkeys.length > 0,
    has_identity: hasOpenid && person.hasIdentity,
  };
  return {
    status: 200,
    body: {
      user: { email: person.email, operator: person.isOperator, ...ways },
      account: shown === undefined ? null : { slug: shown.slug, name: shown.name },
      account_id: signedIn.session.account,
      role,
      csrf,
      now: writeTime(store.clock.now()),
      accounts: own.map(({ id, slug, name }) => ({ slug, name, role: roleIn(person, id) })),
    },
  };
}

/** Operators may show any account, others their own. */
async function changeAccount(store: RecordStore, { signedIn, given }: DashboardCall): Promise<ApiReply> {
  const slug = requireText(given, 'account', 63);
  const accountId = await findAccount(store, slug).catch(nullWhen('not_found'));
  if (accountId === null || roleIn(signedIn.person, accountId) === null) {
    throw refuse('not_found', `There is no account ${slug} among yours`);
  }
  if (!(await moveSession(store, nameOf(signedIn), accountId))) throw refuse('sign_in_required');
  return { status: 200, body: { account: slug } };
}

async function changePassword({ store, signedIn, accountId, given }: DashboardCall): Promise<ApiReply> {
  const password = await hashPassword(requireRead(readPassword(given.password)));
  const removed = await setPassword(store, { ...nameOf(signedIn), accountId }, password);
  if (removed === null) {
    throw refuse('forbidden', 'A password of yours opens more than this account: sign in with it to change it');
  }
  return { status: 200, body: { password_set: true, passkeys_removed: removed } };
}

async function showSessions(store: RecordStore, { signedIn }: DashboardCall): Promise<ApiReply> {
  const sessions = await listVisible(store, signedIn);
  const shown = sessions.map(({ secretHash, at, until, ip, agent }) => ({
    name: secretHash,
    signed_in_at: writeTime(at),
    ends_at: writeTime(until),
    ip,
    agent,
    current: secretHash === signedIn.session.secretHash,
  }));
  return { status: 200, body: { sessions: shown } };
}

/** A bound session sees only those that are bound to the same account. */
async function listVisible(store: RecordStore, { person, session }: DashboardCall['signedIn']) {
  const sessions = await listSessions(store, person.id);
  return session.bound ? sessions.filter(({ bound, account }) => bound && account === session.account) : sessions;
}

async function revoke(store: RecordStore, { req, signedIn }: DashboardCall): Promise<ApiReply> {
  const visible = await listVisible(store, signedIn);
  if (!visible.some(({ secretHash }) => secretHash === req.params.name))
    throw refuse('not_found', 'There is no such session');
  await endSession(store, { personId: signedIn.person.id, secretHash: String(req.params.name) });
  return { status: 200, body: { ended: true } };
}

function nameOf({ person, session }: DashboardCall['signedIn']) {
  return { personId: person.id, secretHash: session.secretHash };
}
