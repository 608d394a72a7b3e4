import { setTimeout as pause } from 'node:timers/promises';
import { codeOf, innermost } from '../base/errors.ts';
import { isJsonObject, membersOf, parseJson } from '../base/parse-json.ts';
import { readBody } from '../base/read-body.ts';
import { printable } from '../base/terminal.ts';
import type { Credentials } from './credentials.ts';
import { ServiceAway, type ServicePatience, type Silence, wordsOf } from './patience.ts';

/** A call that the service answered with an error. */
export class CallRefused extends Error {
  readonly status: number;
  /** The header `x-error-code`, or a code made from the status. */
  readonly code: string;

  constructor(status: number, code: string, sentence: string) {
    super(sentence);
    this.status = status;
    this.code = code;
  }

  /** True when the key itself is refused, so that every other call would be refused too. */
  get isKeyRefused(): boolean {
    return this.status === 403 || (this.status === 401 && this.code !== 'key_quota_exceeded');
  }
}

export interface ServiceCall {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly body?: object;
  readonly idempotencyKey?: string;
  /** Called after each try that the service may have carried out: its answer was lost, or was a 5xx. */
  readonly noteMayBeDone?: () => void;
  /** Ends the call, its waits included. */
  readonly signal: AbortSignal;
  /** Limit of one try where the service needs longer than usual. */
  readonly answerMs?: number;
  /** Silence of a longer task that this call is part of; a new one unless given. */
  readonly silence?: Silence;
}

const defaultAnswerMs = 10_000;
const maxAnswerBytes = 4 * 1024 * 1024;
/** Longest single wait that a rate limit may ask for. */
const maxRetryAfterMs = 65_000;
const defaultRetryMs = 1_000;
/** Words of Node for a proxy that opens no way to the service, with its status. */
const refusalOfProxy = /^Proxy response \((\d+)\)/;
/** Header with the status of a refusal that soft_fail answers with 200. */
const maskedStatus = 'x-original-status';

/** The public API of one service, asked with one key. */
export type ServiceClient = ReturnType<typeof makeServiceClient>;

export function makeServiceClient({ url, key }: Credentials, patience: ServicePatience) {
  const ask = (path: string, init: RequestInit) =>
    // A redirect is not followed: the key would go along.
    fetch(url + path, { ...init, redirect: 'manual', headers: { ...init.headers, 'x-api-key': key } });
  return {
    /** Opens an answer once, without repeating it. */
    open: (path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) =>
      ask(path, { headers, signal }),
    /** Repeats a call until it is answered and returns its JSON; throws `CallRefused` or `ServiceAway`. */
    call: (path: string, call: ServiceCall) => callPatiently((init) => ask(path, init), call, patience, url),
  };
}

/** Repeats a call while its failure may pass by itself, as long as the patience lasts. */
async function callPatiently(
  send: (init: RequestInit) => Promise<Response>,
  { answerMs = defaultAnswerMs, signal, noteMayBeDone, silence: longer, ...call }: ServiceCall,
  patience: ServicePatience,
  url: string,
): Promise<unknown> {
  const init = requestOf(call);
  const silence = longer ?? patience.start();
  let refusedMs = 0;
  for (;;) {
    const limitMs = Math.ceil(Math.max(patience.limits.minTryMs, Math.min(answerMs, silence.leftMs())));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const tried = await tryCall(() => send({ ...init, signal: limit }));
    if ('error' in tried && mayBeDone(tried.error)) noteMayBeDone?.();
    signal.throwIfAborted();
    if ('json' in tried) {
      silence.end();
      return tried.json;
    }
    const { error, retryAfterMs } = tried;
    if (isHopeless(error)) throw new ServiceAway(`No way to ${url}: ${wordsOf(error)}`, { cause: error });
    if (!(error instanceof CallRefused) || error.status >= 500) {
      await silence.wait(error, signal, Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
      continue;
    }
    const waitMs = retryAfterMs ?? defaultRetryMs;
    refusedMs += waitMs;
    if (!passesByItself(error, retryAfterMs) || refusedMs > patience.limits.refusedMs) throw error;
    await pause(waitMs, undefined, { signal });
    silence.end();
  }
}

function requestOf({ method = 'GET', body, idempotencyKey }: Pick<ServiceCall, 'method' | 'body' | 'idempotencyKey'>) {
  const headers = {
    ...(body && { 'content-type': 'application/json' }),
    ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
  };
  return { method, headers, ...(body && { body: JSON.stringify(body) }) };
}

/**
 * Returns true for a rate limit, and for a repeat of an idempotent call whose first one still runs, unless it lasts too long. The
 * service says when to ask again: without that, the key was used with other parameters, or a batch is above a limit. The limit of a
 * proxy has no such code.
 */
function passesByItself({ status, code }: CallRefused, retryAfterMs: number | null): boolean {
  if (retryAfterMs !== null && retryAfterMs > maxRetryAfterMs) return false;
  if (code === 'rate_limited' || code === 'idempotency_conflict') return retryAfterMs !== null;
  return status === 429 && code !== 'key_quota_exceeded';
}

/** Returns false for a try that the service did not carry out: it refused the call, or was not reached. */
function mayBeDone(error: unknown): boolean {
  if (error instanceof CallRefused) return error.status >= 500;
  return (
    !isHopeless(error) &&
    !refusalOfProxy.test(wordsOf(error)) &&
    !/^(?:ECONNREFUSED|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(codeOf(innermost(error)))
  );
}

type TriedCall = { readonly json: unknown } | { readonly error: unknown; readonly retryAfterMs: number | null };

async function tryCall(send: () => Promise<Response>): Promise<TriedCall> {
  try {
    const response = await send();
    const json = parseJson(await readText(response));
    const isOk = response.ok && !response.headers.has(maskedStatus);
    if (isOk && isJsonObject(json)) return { json };
    return { error: refusalOf(response, json), retryAfterMs: readRetryAfter(response) };
  } catch (error) {
    return { error, retryAfterMs: null };
  }
}

/** Returns the refusal in an answer that is no success. */
export function refusalOf(response: Response, json: unknown): CallRefused {
  const { headers } = response;
  const status = Number(headers.get(maskedStatus) ?? response.status);
  const said = membersOf(json).error;
  if (typeof said !== 'string')
    return new CallRefused(status, `http_${status}`, `The address does not answer as trawl does (status ${status})`);
  return new CallRefused(status, headers.get('x-error-code') ?? `http_${status}`, printable(said));
}

/** Returns the milliseconds to wait; those until a date are counted by the clock of its sender. */
export function readRetryAfter({ headers }: Response): number | null {
  const text = headers.get('retry-after') ?? '';
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000;
  const [end, sent] = [readDate(text), readDate(headers.get('date') ?? '')];
  return end === null || sent === null ? null : Math.max(0, end - sent);
}

function readDate(text: string): number | null {
  const ms = text.endsWith(' GMT') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

/** Reads an answer of the API, of at most 4 MiB. */
export async function readText(response: Response): Promise<string> {
  const bytes = await readBody(response.body ?? [], maxAnswerBytes);
  if (bytes === null) throw new Error('the answer is too large');
  return bytes.toString();
}

/** Returns true for an error that no waiting ends: a wrong certificate, a name that does not exist, a port that is never asked, a proxy that opens no way. */
function isHopeless(error: unknown): boolean {
  const cause = innermost(error);
  return (
    (cause instanceof Error && cause.message === 'bad port') ||
    /^(?:403|407)$/.test(refusalOfProxy.exec(wordsOf(error))?.[1] ?? '') ||
    /^(?:ENOTFOUND|ERR_TLS_.*|ERR_SSL_.*|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*|CERT_.*|EPROTO)$/.test(codeOf(cause))
  );
}
