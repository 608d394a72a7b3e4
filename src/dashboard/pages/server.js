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
};

let csrf = '';
let signedOut = () => {};
let reached = () => {};

/** Called when a session has ended while its page was open; the page stays as it is. */
export function onSignedOut(listener) {
  signedOut = listener;
}

/** Called after each request with whether the server was reached. */
export function onReached(listener) {
  reached = listener;
}

/** Asks the server; returns the JSON of its answer, or throws a ServerError with a sentence for people. */
export async function ask(method, path, body) {
  const headers = { accept: 'application/json' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (method !== 'GET' && csrf) headers['x-csrf-token'] = csrf;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    reached(false);
    throw new ServerError(0, 'The server cannot be reached. Check your connection; nothing was lost.');
  }
  reached(true);
  const json = await answer.json().catch(() => ({}));
  if (answer.ok) return json;
  const code = answer.headers.get('x-error-code');
  if (code === 'sign_in_required' && path !== '/api/session') signedOut();
  const wait = answer.headers.get('retry-after');
  throw new ServerError(
    answer.status,
    sentences[code] ?? json.error ?? `The server answered ${answer.status}`,
    wait && Number(wait),
  );
}

/** Reads who is signed in; `null` when nobody is. */
export async function readSession() {
  try {
    const session = await ask('GET', '/api/session');
    csrf = session.csrf;
    return session;
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}
