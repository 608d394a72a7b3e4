import type { ServerResponse } from 'node:http';
import { type FailureCode, failures, Refusal, type RefusalCode, refusals, refuse } from '../base/errors.ts';
import type { Rates, RefusedCall } from '../store/access/authorize.ts';

export type ReplyHeaders = Record<string, string>;

export interface ApiReply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<ReplyHeaders>;
  /** The real status where soft_fail or a setting (D1) shows another one. */
  readonly loggedStatus?: number;
  /** True when the script that moved money has written the request-log line already. */
  readonly isLogged?: boolean;
}

/** Logged when the caller was gone before an answer. */
export const goneStatus = 499;
/**
 * Headers of a stream of events: a proxy that buffers it (nginx) would keep it back, and one that compresses it (HAProxy) the end of each
 * event until the next one.
 */
export const streamHeaders = { 'x-accel-buffering': 'no', 'cache-control': 'no-store, no-transform' } as const;
/** `Retry-After` of a 503: a restarted or replaced Redis usually answers again after 2 s; a drain lasts for minutes at least. */
const waitSeconds: Partial<Record<RefusalCode, number>> = { unavailable: 2, draining: 30 };

/** `Retry-After` of the repeat of a call that still runs: metadata is usually read within seconds. */
const runningSeconds = 2;

/** Returns the answer to an error that was thrown; anything but a refusal is an internal error. */
export function errorReply(error: unknown, keyQuotaStatus: number = refusals.key_quota_exceeded.status): ApiReply {
  const { code, message, retryAfterSeconds } = error instanceof Refusal ? error : refuse('internal_error');
  const status = code === 'key_quota_exceeded' ? keyQuotaStatus : refusals[code].status;
  const wait = retryAfterSeconds ?? waitSeconds[code] ?? null;
  const headers = { 'x-error-code': code, ...(wait === null ? {} : { 'retry-after': String(wait) }) };
  return { status, body: { error: message }, headers };
}

/** Returns the answer of a synchronous call whose metadata could not be read (D27). */
export function failureReply(code: FailureCode, text: string | null): ApiReply {
  const sentence = text ?? failures[code].sentence;
  switch (failures[code].log) {
    case 404:
      return errorReply(refuse('not_found', sentence));
    case 400:
      return errorReply(refuse('bad_request', `Bad Request: query cannot be used: ${sentence}`));
    case 500:
      return errorReply(refuse('internal_error', sentence));
  }
}

/** Returns the same answer under soft_fail: status 200, everything else as it is (D8). */
export function softened(reply: ApiReply): ApiReply {
  const headers = { ...reply.headers, 'x-original-status': String(reply.status) };
  return { ...reply, status: 200, headers };
}

/** Returns the answer to a call that was admitted, or repeated one that was: the id of its job or batch, and where to find it. */
export function acceptedReply(
  kind: 'job' | 'batch',
  { asyncStatus, basePath }: { readonly asyncStatus: number; readonly basePath: string },
  answer: { readonly admitted: string; readonly held: number } | { readonly repeated: string },
): ApiReply {
  const isNew = 'admitted' in answer;
  const id = isNew ? answer.admitted : answer.repeated;
  const location = `${basePath}/v1/${kind === 'job' ? 'jobs' : 'batches'}/${id}`;
  const headers = { location, ...(isNew && { 'x-credits-held': String(answer.held) }) };
  return { status: asyncStatus, loggedStatus: 202, body: { [`${kind}_id`]: id }, headers };
}

/** Writes an answer as JSON, with these headers besides its own; one that closes its connection may wait with that, once it is written. */
export function sendReply(
  res: ServerResponse,
  { status, headers, body }: ApiReply,
  others?: Readonly<ReplyHeaders>,
  closing?: Promise<void>,
): void {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    ...others,
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  if (closing === undefined) return void res.end(text);
  res.write(text);
  void closing.then(() => res.end());
}

/** Sets the RateLimit headers of what the record answered; throws a refusal in the words of the contract. */
export function requireAllowed<T extends { readonly rates: Rates }>(
  { headers }: { readonly headers: ReplyHeaders },
  answer: T | RefusedCall,
  badRequest: string = refusals.bad_request.sentence,
): T {
  setRateHeaders(headers, answer.rates);
  if (!('refused' in answer)) return answer;
  const { refused: code, detail, retryAfterSeconds } = answer;
  // A conflict that passes by itself says so by a time to wait.
  const isRunning = code === 'idempotency_conflict' && detail === 'running';
  const wait = retryAfterSeconds ?? (isRunning ? runningSeconds : undefined);
  throw refuse(code, code === 'bad_request' ? badRequest : sentenceOf(code, detail), wait);
}

/** Sets the standard RateLimit fields, for the windows that the plan has. */
function setRateHeaders(headers: ReplyHeaders, { perSecond, perMinute }: Rates): void {
  const [policies, left]: [string[], string[]] = [[], []];
  if (perSecond) {
    policies.push(`"per-second";q=${perSecond.limit};w=1`);
    left.push(`"per-second";r=${perSecond.left};t=1`);
  }
  if (perMinute) {
    policies.push(`"per-minute";q=${perMinute.limit};w=60`);
    left.push(`"per-minute";r=${perMinute.left};t=60`);
  }
  if (policies.length === 0) return;
  headers['ratelimit-policy'] = policies.join(', ');
  headers.ratelimit = left.join(', ');
}

/** Returns the sentence of `rate_limited` in the words of the contract. */
export function rateSentence(limit: string): string {
  return `You have exceeded the ${limit} rate limit on your subscription`;
}

function sentenceOf(code: RefusalCode, detail: string): string {
  switch (code) {
    case 'key_quota_exceeded':
      return `${refusals[code].sentence} ${detail}`;
    case 'rate_limited':
      return rateSentence(detail);
    case 'idempotency_conflict':
      return detail === 'running'
        ? 'The first request with this Idempotency-Key is still running'
        : 'This Idempotency-Key was used with other parameters';
    default:
      return refusals[code].sentence;
  }
}
