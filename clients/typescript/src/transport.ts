import { type ErrorCode, TrawlError } from './errors.ts';
import { isHopeless, makePatience, unreachable, within } from './patience.ts';

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
  /** Code of a refusal that is thrown at once although it may pass by itself. */
  readonly unrepeated?: string | undefined;
}

/** The service as one key sees it. */
export interface Transport extends Omit<TransportOptions, 'fetch'> {
  /** Asks an address without the key; throws an error that tells why there is no answer. */
  readonly reach: (address: string, init: RequestInit) => Promise<Response>;
  /** Repeats a call until it is answered for good, and returns the JSON of its answer, which must have that member. */
  readonly ask: (path: string, member: string, call?: Call) => Promise<unknown>;
  /** Opens an answer once; throws a refusal, or an error that tells of a service that is away. */
  readonly open: (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;
}

const usualTryMs = 20_000;
/** A failure of the service itself is seldom cured by asking on and on. */
const maxInternalErrors = 3;

export function makeTransport(options: TransportOptions): Transport {
  const { url, key, patienceMs } = options;
  requireAddress(url);
  if (!/^[!-~]+$/.test(key))
    throw new TrawlError('invalid_api_key', 'The API key must be given, and have visible ASCII characters alone');
  /** Origins that have answered: what is wrong on the way to one of them, such as a certificate that has expired, may pass. */
  const answered = new Set<string>();
  const reach: Transport['reach'] = async (address, init) => {
    const { origin } = new URL(address);
    try {
      const response = await options.fetch(address, init);
      answered.add(origin);
      return response;
    } catch (cause) {
      throw unreachable(address, cause, answered.has(origin) || !isHopeless(cause));
    }
  };
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    // A redirect is not followed: the key would go along.
    const headers = { ...(init.headers as Record<string, string>), 'x-api-key': key };
    const response = await reach(url + path, { ...init, redirect: 'manual', headers });
    // Under soft_fail the status of a refusal is 200.
    return response.ok && !response.headers.has('x-original-status') ? response : refuse(response);
  };
  const once = async (path: string, member: string, call: Call): Promise<unknown> => {
    const { method = 'GET', body, idempotencyKey } = call;
    const headers: Record<string, string> = {};
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined && !/^[!-~]([ -~]*[!-~])?$/.test(idempotencyKey))
      throw new TrawlError(
        'bad_request',
        'The idempotency key must be visible ASCII characters, with spaces only between them',
      );
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    return within(call.tryMs ?? usualTryMs, call.signal, async (signal) =>
      readJson(url, await send(path, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) }), member),
    );
  };
  const ask = async (path: string, member: string, call: Call = {}): Promise<unknown> => {
    const patience = makePatience(patienceMs);
    for (let internalErrors = 0; ; ) {
      try {
        return await once(path, member, call);
      } catch (error) {
        call.signal?.throwIfAborted();
        if (!(error instanceof TrawlError) || !mayRepeat(error) || error.code === call.unrepeated) throw error;
        if (error.status === 500) internalErrors += 1;
        if (internalErrors >= maxInternalErrors) throw error;
        await patience.wait(error, call.signal);
      }
    }
  };
  return { url, key, patienceMs, reach, ask, open: (path, headers, signal) => send(path, { headers, signal }) };
}

function requireAddress(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  // Paths are appended to the text itself, behind a blank or a query, too.
  const isBare = /^[^\s?#]*$/.test(url) && parsed?.username === '' && parsed.password === '';
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || !isBare)
    throw new TrawlError(
      'bad_request',
      'The address of the service must be an http or https URL without user, password, query, fragment and blanks',
    );
}

/** Returns true for an error that passes by itself. */
export function mayRepeat({ code, status, retryable, retryAfterSeconds }: TrawlError): boolean {
  // A repeat may meet the first call, which still runs; a conflict with another call names no time to wait.
  const isRunning = code === 'idempotency_conflict' && retryAfterSeconds !== null;
  const isLimited = code === 'rate_limited' && retryable;
  const isAway = code === 'unreachable' && retryable;
  return isRunning || isAway || isLimited || (status ?? 0) >= 500;
}

async function readJson(url: string, response: Response, member: string): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (cause) {
    // The answer was cut off.
    throw unreachable(url, cause);
  }
  const json = parse(text);
  if (typeof json === 'object' && json !== null && member in json) return json;
  throw new TrawlError('not_trawl', `${url} does not answer as trawl does`, { status: response.status });
}

async function refuse(response: Response): Promise<never> {
  const { headers } = response;
  const status = Number(headers.get('x-original-status') ?? response.status);
  const said = parse(await response.text().catch(() => ''));
  const sentence = typeof said === 'object' && said !== null && 'error' in said ? String(said.error) : null;
  const told = headers.get('x-error-code');
  const retryAfterSeconds = readRetryAfter(headers);
  // A limit of the service that passes says when; a batch above one without that never fits.
  const neverFits = told === 'rate_limited' && retryAfterSeconds === null;
  throw new TrawlError(told ?? codeOf(status), sentence ?? `The service answered with status ${status}`, {
    status,
    requestId: headers.get('x-request-id'),
    retryAfterSeconds,
    ...(neverFits && { retryable: false }),
  });
}

/** Returns the code of an answer that has none: a proxy in between has its own limits and failures. */
function codeOf(status: number): ErrorCode {
  if (status === 429) return 'rate_limited';
  return status >= 500 ? 'unavailable' : 'not_trawl';
}

/** Returns the seconds to wait; those until a date are counted by the clock of its sender. */
function readRetryAfter(headers: Headers): number | null {
  const wait = headers.get('retry-after') ?? '';
  if (/^\d{1,6}$/.test(wait)) return Number(wait);
  const [end, sent] = [readDate(wait), readDate(headers.get('date') ?? '')];
  return end === null || sent === null ? null : Math.max(0, Math.ceil((end - sent) / 1000));
}

function readDate(text: string): number | null {
  const ms = text.endsWith(' GMT') ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Text of a proxy in between; the status tells enough.
    return null;
  }
}
