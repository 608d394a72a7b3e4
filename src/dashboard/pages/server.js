/** An answer of the server that is no success, or none at all. */
export class ServerError extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

let csrf = '';
let signedOut = () => {};

/** Called when a session has ended while its page was open; the page stays as it is. */
export function onSignedOut(listener) {
  signedOut = listener;
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
    throw new ServerError(0, 'The server cannot be reached. Check your connection; nothing was lost.');
  }
  const json = await answer.json().catch(() => ({}));
  if (answer.ok) return json;
  if (answer.status === 401 && path !== '/api/session' && path !== '/api/sign-in') signedOut();
  const wait = answer.headers.get('retry-after');
  throw new ServerError(answer.status, json.error ?? `The server answered ${answer.status}`, wait && Number(wait));
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
