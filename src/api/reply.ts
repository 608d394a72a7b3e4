import type { Response } from 'express';
import { type FailureCode, failures, Refusal, type RefusalCode, refusals } from '../base/errors.ts';
import type { Rates, Refused } from '../store/access/authorize.ts';

/** What a route answers; `null` instead of one says that it has answered itself. */
export interface Reply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly rates?: Rates;
  /** The real status where soft_fail or a setting (D1) shows another one. */
  readonly masked?: number;
  /** Whether the script that moved money has written the request-log line already. */
  readonly isLogged?: boolean;
}

/** Statuses that an operator may set differently (D1, D34). */
export interface Statuses {
  readonly accepted: number;
  readonly keyQuota: number;
}

/** After how long it is worth another try, where nothing more is known. */
const unavailableSeconds = 2;
const jsonType = 'application/json; charset=utf-8';
const windows = [
  { of: 'perSecond', name: 'per-second', seconds: 1 },
  { of: 'perMinute', name: 'per-minute', seconds: 60 },
] as const;

/** An answer of the record that refuses, in the words of the contract. */
export function refusedReply(refused: Refused, statuses: Statuses, sentence?: string): Reply {
  const { refused: code, detail, retryAfterSeconds, rates } = refused;
  const status = code === 'key_quota_exceeded' ? statuses.keyQuota : refusals[code].status;
  return { ...errorReply(code, status, sentence ?? sentenceOf(code, detail), retryAfterSeconds), rates };
}

/** Any error as an answer; what is no refusal is an internal error. */
export function errorOf(error: unknown): Reply {
  if (!(error instanceof Refusal)) return refusal('internal_error');
  return errorReply(error.code, refusals[error.code].status, error.message, error.retryAfter ?? null);
}

/** One of the refusals, with its own sentence unless another is given. */
export function refusal(code: RefusalCode, sentence: string = refusals[code].sentence, retryAfter?: number): Reply {
  return errorReply(code, refusals[code].status, sentence, retryAfter ?? null);
}

/** Why metadata could not be read, as the answer of a synchronous call (D27). */
export function failureReply(code: FailureCode, text: string | null): Reply {
  const sentence = text ?? failures[code].sentence;
  switch (failures[code].log) {
    case 404:
      return refusal('not_found', sentence);
    case 400:
      return refusal('bad_request', `Bad Request: query cannot be used: ${sentence}`);
    case 500:
      return refusal('internal_error', sentence);
  }
}

/** The same answer under soft_fail: status 200, everything else as it is (D8). */
export function softened(reply: Reply): Reply {
  if (reply.status < 400) return reply;
  return {
    ...reply,
    status: 200,
    masked: reply.status,
    headers: { ...reply.headers, 'x-original-status': String(reply.status) },
  };
}

/** Writes an answer as JSON with these headers, names and values by turns, and its own. */
export function send(res: Response, reply: Reply, headers: readonly string[] = []): void {
  if (res.headersSent || res.destroyed) return;
  const body = JSON.stringify(reply.body);
  const all = [...headers, 'content-type', jsonType, 'content-length', String(Buffer.byteLength(body))];
  for (const name in reply.headers) all.push(name, reply.headers[name] ?? '');
  if (reply.rates) all.push(...rateHeaders(reply.rates));
  // In one go: set one by one, each would be kept, sorted in and looked up again.
  res.writeHead(reply.status, all).end(body);
}

/** The standard RateLimit fields, for the windows that the plan has. */
export function rateHeaders(rates: Rates): string[] {
  let [policy, left] = ['', ''];
  for (const { of, name, seconds } of windows) {
    const rate = rates[of];
    if (!rate) continue;
    const between = policy === '' ? '' : ', ';
    policy += `${between}"${name}";q=${rate.limit};w=${seconds}`;
    left += `${between}"${name}";r=${rate.left};t=${seconds}`;
  }
  return policy === '' ? [] : ['ratelimit-policy', policy, 'ratelimit', left];
}

function errorReply(code: RefusalCode, status: number, sentence: string, retryAfter: number | null): Reply {
  const wait = retryAfter ?? (code === 'unavailable' ? unavailableSeconds : null);
  return {
    status,
    body: { error: sentence },
    headers: { 'x-error-code': code, ...(wait === null ? {} : { 'retry-after': String(wait) }) },
  };
}

function sentenceOf(code: RefusalCode, detail: string): string {
  switch (code) {
    case 'key_quota_exceeded':
      return `${refusals[code].sentence} ${detail}`;
    case 'rate_limited':
      return `You have exceeded the ${detail} rate limit on your subscription`;
    case 'idempotency_conflict':
      return detail === 'running'
        ? 'The first request with this Idempotency-Key is still running'
        : 'This Idempotency-Key was used with other parameters';
    default:
      return refusals[code].sentence;
  }
}
