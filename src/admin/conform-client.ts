import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { parseJson } from '../base/parse-json.ts';

export interface ConformAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The body, of which at most a megabyte is read. */
  readonly text: string;
  /** The body when it is JSON, else `null`. */
  readonly json: unknown;
}

/** Content of a call; the header carries the key of this run unless another, or none, is given. */
interface CallOptions {
  readonly key?: string | null;
  readonly query?: Readonly<Record<string, string>> | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | object;
}

/** Deployment under test, and the account whose key is used. */
export interface ConformOptions {
  readonly url: string;
  readonly key: string;
  readonly mediaUrl: string | null;
}

const answerSeconds = 70;
const streamSeconds = 20;
const maxWaitSeconds = 65;
const maxTries = 3;
const maxBytes = 1024 * 1024;
const maxListedJobs = 100;

/** Client of one deployment that remembers the jobs it has started there. */
export type ConformClient = ReturnType<typeof makeConformClient>;

/** The signal ends every call at once. */
export function makeConformClient({ url, key, mediaUrl }: ConformOptions, signal: AbortSignal) {
  const film = `https://conform.invalid/${randomUUID()}`;
  const started = new Set<string>();
  const made = new Map<string, Promise<unknown>>();

  const send = (method: string, target: string, carried: CallOptions, end: AbortSignal): Promise<Response> =>
    fetch(addressOf(url, target, carried), {
      ...{ method, redirect: 'manual', signal: end },
      ...toSend({ key, ...carried }),
    });
  const call = async (method: string, target: string, carried: CallOptions, end: AbortSignal) => {
    for (let tried = 1; ; tried++) {
      const limit = AbortSignal.any([end, AbortSignal.timeout(answerSeconds * 1000)]);
      const response = await send(method, target, carried, limit);
      const answer = await readAnswer(response);
      const wait = Number(answer.headers.get('retry-after') ?? Number.POSITIVE_INFINITY);
      // The plan's rate limit is no failure of the checked row: wait as told, then try again.
      if (answer.status === 429 && tried < maxTries && wait <= maxWaitSeconds) {
        await pause(wait * 1000, undefined, { signal: end });
        continue;
      }
      const id = pick(answer.json, 'job_id');
      if (typeof id === 'string') started.add(id);
      return answer;
    }
  };

  return {
    key,
    mediaUrl,
    /** Path of the deployment, which a proxy takes off; '' for none. */
    path: new URL(url).pathname.replace(/\/$/, ''),
    /** A URL that this run alone knows and that no server has: the name ends in a domain that never exists. */
    film,
    call: (method: string, target: string, carried: CallOptions = {}) => call(method, target, carried, signal),
    get: (target: string, query: CallOptions['query'] = '') => call('GET', target, { query }, signal),
    /** Returns the text of a stream, once it holds these words or has ended. */
    stream: async (target: string, words: string) => {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(streamSeconds * 1000)]);
      const response = await send('GET', target, {}, limit);
      return (await readAnswer(response, words)).text;
    },
    /** Makes something once for all the rows that look at it. */
    once: <T>(name: string, make: () => Promise<T>) => {
      if (!made.has(name)) made.set(name, make());
      return made.get(name) as Promise<T>;
    },
    /** Cancels every job that was started, and removes the file of one that has ended. */
    tidy: async () => {
      // An own signal: the jobs must end also when the run was broken off.
      const end = AbortSignal.timeout(maxWaitSeconds * 1000);
      const list = await call('GET', '/v1/jobs', { query: { limit: String(maxListedJobs) } }, end);
      const open = pick(list.json, 'jobs');
      for (const job of Array.isArray(open) ? open : []) {
        if (String(pick(job, 'args.query')).startsWith(film)) started.add(String(pick(job, 'id')));
      }
      for (const id of started) await call('DELETE', `/v1/jobs/${encodeURIComponent(id)}`, {}, end);
    },
  };
}

function addressOf(url: string, target: string, { query = '' }: CallOptions): string {
  const asked = typeof query === 'string' ? query : String(new URLSearchParams(query));
  return `${target.startsWith('/') ? url : ''}${target}${asked && `?${asked}`}`;
}

/** Returns the value at a dotted path of a JSON value, or undefined. */
export function pick(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = Reflect.get(at, name);
  }
  return at;
}

function toSend({ key = null, headers, body }: CallOptions): Pick<RequestInit, 'headers' | 'body'> {
  return {
    headers: {
      ...(key === null ? {} : { 'x-api-key': key }),
      ...(typeof body === 'object' ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'object' ? JSON.stringify(body) : body }),
  };
}

async function readAnswer(response: Response, words?: string): Promise<ConformAnswer> {
  const decoder = new TextDecoder();
  let text = '';
  // Leaving the loop ends the connection.
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > maxBytes || (words !== undefined && text.includes(words))) break;
  }
  return { status: response.status, headers: response.headers, text, json: parseJson(text) ?? null };
}
