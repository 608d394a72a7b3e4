import { TrawlError } from './errors.ts';
import { makePatience, unreachable } from './patience.ts';

export interface TransportOptions {
  readonly url: string;
  readonly key: string;
  readonly patienceMs: number;
  readonly fetch: typeof fetch;
}

export interface Call {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly body?: object;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal | undefined;
  /** Limit of one try; 20 s unless given. */
  readonly tryMs?: number;
}

/** The service as one key sees it. */
export interface Transport extends TransportOptions {
  /** Repeats a call until it is answered for good, and returns the JSON of its answer. */
  readonly ask: (path: string, call?: Call) => Promise<unknown>;
  /** Opens an answer once; throws a refusal, or an error that tells of a service that is away. */
  readonly open: (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;
}

const usualTryMs = 20_000;
/** A failure of the service itself is seldom cured by asking on and on. */
const maxInternalErrors = 3;

export function makeTransport(options: TransportOptions): Transport {
  const { url, key, patienceMs } = options;
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    let response: Response;
    try {
      // A redirect is not followed: the key would go along.
      const headers = { ...(init.headers as Record<string, string>), 'x-api-key': key };
      response = await options.fetch(url + path, { ...init, redirect: 'manual', headers });
    } catch (cause) {
      throw unreachable(url, cause);
    }
    return response.ok ? response : refuse(response);
  };
  const once = async (path: string, { method = 'GET', body, idempotencyKey, ...call }: Call): Promise<unknown> => {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    const signal = AbortSignal.any([
      AbortSignal.timeout(call.tryMs ?? usualTryMs),
      ...(call.signal ? [call.signal] : []),
    ]);
    const response = await send(path, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) });
    return readJson(url, response);
  };
  const ask = async (path: string, call: Call = {}): Promise<unknown> => {
    const patience = makePatience(patienceMs);
    for (let internalErrors = 0; ; ) {
      try {
        return await once(path, call);
      } catch (error) {
        call.signal?.throwIfAborted();
        if (!(error instanceof TrawlError) || !mayRepeat(error)) throw error;
        if (error.status === 500) internalErrors += 1;
        if (internalErrors >= maxInternalErrors) throw error;
        await patience.wait(error, call.signal);
      }
    }
  };
  return { ...options, ask, open: (path, headers, signal) => send(path, { headers, signal }) };
}

/** Returns true for an error that passes by itself. A repeat may meet the first call, which still runs (409). */
export function mayRepeat({ code, status }: TrawlError): boolean {
  return code === 'unreachable' || code === 'idempotency_conflict' || code === 'rate_limited' || (status ?? 0) >= 500;
}

async function readJson(url: string, response: Response): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (cause) {
    // The answer was cut off.
    throw unreachable(url, cause);
  }
  const json = parse(text);
  if (typeof json === 'object' && json !== null) return json;
  throw new TrawlError('not_trawl', `${url} does not answer as trawl does`, { status: response.status });
}

async function refuse(response: Response): Promise<never> {
  const { status, headers } = response;
  const said = parse(await response.text().catch(() => ''));
  const sentence = typeof said === 'object' && said !== null && 'error' in said ? String(said.error) : null;
  const wait = headers.get('retry-after') ?? '';
  const code = headers.get('x-error-code') ?? (status >= 500 ? 'unavailable' : 'not_trawl');
  throw new TrawlError(code, sentence ?? `The service answered with status ${status}`, {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterSeconds: /^\d{1,6}$/.test(wait) ? Number(wait) : null,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Text of a proxy in between; the status tells enough.
    return null;
  }
}
