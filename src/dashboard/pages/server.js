/** An answer of the server that is no success, or none at all. */
class ServerError extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

const byHand = 'The key “dashboard”, with which people of this account download by hand,';
/** Sentences for people, where those of the API are for programs. */
const sentences = {
  key_quota_exceeded: `${byHand} has reached its quota: raise it under Keys, or wait.`,
  inactive_api_key: `${byHand} is inactive: reactivate it under Keys.`,
  expired_api_key: `${byHand} has expired: change its last day under Keys.`,
  payment_required: 'No credit is left, or an invoice is unpaid: see Billing.',
  // By its text: refusals of the dashboard's own have the same code.
  Forbidden: 'The account is suspended, so nothing can be started: ask the operator.',
};

/** Limit of a reading, so that a connection that hangs does not stop what moves. A change is never cut off: it may have been made. */
const readingMs = 20_000;

const unread = 'The server cannot be reached. Check your connection; nothing was lost.';
const lost = 'The server cannot be reached, or its answer was lost';
const guarded =
  'The proxy in front of the service wants you to sign in there: do so in another tab, then try again here.';
const unavailable = 'The service cannot answer just now';
const changed = 'the change may have been made. Look before you send it again.';
const repeatable = 'send the same again, and nothing is started or charged twice.';

/** Returns the sentence of a request to which no answer came, or the one that the service cannot answer. */
function sentenceOf({ method, path, repeatKey }, isReached) {
  const why = isReached ? unavailable : lost;
  if (method !== 'GET' && !path.startsWith('/api/sign-')) return `${why}: ${repeatKey ? repeatable : changed}`;
  return isReached ? `${why}: try again in a moment.` : unread;
}

let csrf = '';
/** Milliseconds by which the clock of the service is ahead of the browser's. */
let aheadMs = 0;
/** Id of the account that the page shows, which each request names; `null` before the session is known. */
let account = null;
/** E-mail address of the person who is signed in. */
let person = '';
let signedOut = () => {};
let accountChanged = () => {};
let reached = () => {};

/** Called when a session has ended while its page was open; the page stays as it is. */
export function onSignedOut(listener) {
  signedOut = listener;
}

/** Called when a request was refused because the session shows another account than the page. */
export function onAccountChanged(listener) {
  accountChanged = listener;
}

/** Called after each request with whether the server was reached. */
export function onReached(listener) {
  reached = listener;
}

/** Time of the service: the clock of a browser may be hours away. */
export function now() {
  return Date.now() + aheadMs;
}

/** Adds the account that the page shows to the address of a request that the browser sends by itself. */
export function ofAccount(path) {
  return account === null ? path : `${path}${path.includes('?') ? '&' : '?'}account=${account}`;
}

/**
 * Asks the server; returns the JSON of its answer, or throws a ServerError with a sentence for people. With the same `repeatKey` a call
 * that is repeated is carried out once.
 */
export function ask(method, path, body, repeatKey = '') {
  const signal = method === 'GET' ? AbortSignal.timeout(readingMs) : undefined;
  return send({ method, path, body, repeatKey, signal, read: (answer) => answer.json() });
}

/** Reads a file as a blob. */
export function askFile(path) {
  return send({ method: 'GET', path, read: (answer) => answer.blob() });
}

async function send(request) {
  const { method, path, body, repeatKey, signal, read } = request;
  const token = csrf;
  const headers = { accept: 'application/json' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (method !== 'GET' && csrf) headers['x-csrf-token'] = csrf;
  // The session says which account it shows.
  if (account !== null && path !== '/api/session') headers['x-account'] = account;
  if (repeatKey) headers['idempotency-key'] = repeatKey;
  let answer;
  let json;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      // No route leads elsewhere: a proxy does, to a sign-in of its own.
      redirect: 'manual',
    });
    // An answer that broke off is none; a proxy refuses without JSON.
    json = answer.ok ? await read(answer) : await answer.json().catch(() => ({}));
  } catch {
    reached(false);
    throw new ServerError(0, sentenceOf(request, false));
  }
  reached(true);
  if (answer.ok) return json;
  const code = answer.headers.get('x-error-code');
  if (code === 'forbidden' && method !== 'GET' && (await hasNewToken(token))) return send(request);
  if (code === 'sign_in_required' && path !== '/api/session') signedOut();
  if (code === 'other_account') accountChanged();
  const wait = answer.headers.get('retry-after');
  throw new ServerError(isGuarded(answer) ? 0 : answer.status, explain(request, answer, json), wait && Number(wait));
}

/** Returns true for the answer of a proxy that wants a sign-in of its own: each refusal of the service has a code. */
function isGuarded({ type, status, headers }) {
  return !headers.has('x-error-code') && (type === 'opaqueredirect' || status === 401 || status === 403);
}

/** Returns the sentence for people about an answer that is no success. */
function explain(request, answer, json) {
  if (isGuarded(answer)) return request.method === 'GET' ? guarded : `${guarded} Nothing was changed.`;
  const code = answer.headers.get('x-error-code');
  // A proxy that fails, without a code, may have sent the request on.
  if (code === 'unavailable' || (answer.status >= 500 && code === null)) return sentenceOf(request, true);
  return sentences[code] ?? sentences[json.error] ?? json.error ?? `The server answered ${answer.status}`;
}

/** Takes the token of a session that the same person has opened in another tab, in the same account; returns true when there is one. */
async function hasNewToken(token) {
  const session = token && (await ask('GET', '/api/session').catch(() => null));
  if (!session || session.csrf === token) return false;
  if (session.user.email !== person || session.account_id !== account) return false;
  csrf = session.csrf;
  return true;
}

/** Reads who is signed in; `null` when nobody is. */
export async function readSession() {
  try {
    const session = await ask('GET', '/api/session');
    csrf = session.csrf;
    account = session.account_id;
    person = session.user.email;
    aheadMs = Date.parse(session.now) - Date.now();
    return session;
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}
