import type { RefusalCode } from '../base/errors.ts';
import type { Schema } from '../model/answer-schemas.ts';
import type { ParameterTable } from '../model/parameter-kinds.ts';

/** Tags of the operations, in the order in which a reader meets them. */
export const tags = {
  Downloads: 'Start a download. It is a job, which costs one credit when it completes and nothing when it does not.',
  Metadata: 'Read what a source tells of a film or of sound, without the file.',
  Jobs: 'Follow, list, cancel and repeat jobs. All of it is free.',
  Batches: 'Start many jobs at once, follow and cancel them together.',
  Files: 'Fetch the file of a completed job by its signed link, which needs no key.',
  Account: 'Balances, limits and the health of the platform. All of it is free.',
  Agents: 'The Model Context Protocol, for programs that act for people.',
  Service: 'The service itself, without a key.',
  Webhooks: 'Posts of the service to your receiver, at the end of a download or of a batch.',
  Aliases: 'The same operations at further paths, for good: callers of them need not change.',
} as const;

/** Request headers that an operation reads, besides the key. */
export type RequestHeader = 'idempotency-key' | 'last-event-id' | 'range';

/** One operation: the words about it, its parameters besides the global ones, and its answers. */
export interface OperationRow {
  readonly id: string;
  readonly tag: keyof typeof tags;
  readonly summary: string;
  readonly description: string;
  readonly tables?: readonly ParameterTable[];
  readonly headers?: readonly RequestHeader[];
  readonly ok: Readonly<Record<string, Schema | 'stream' | 'messages' | 'file' | 'page'>>;
  /** Schema of the body of a POST that costs no credit. */
  readonly body?: Schema;
  readonly errors: readonly RefusalCode[];
  /** Descriptions of further statuses, which have no JSON or the body of an error. */
  readonly besides?: Readonly<Record<string, string>>;
}

export const keyedRefusals: readonly RefusalCode[] = [
  'bad_request',
  'invalid_api_key',
  'inactive_api_key',
  'expired_api_key',
  'forbidden',
  'ip_blocked',
  'rate_limited',
  'internal_error',
  'unavailable',
];

export const creditRefusals: readonly RefusalCode[] = [
  ...keyedRefusals,
  'draining',
  'key_quota_exceeded',
  'payment_required',
  'idempotency_conflict',
  'payload_too_large',
];

/** Every refusal that the header `x-error-code` of the API may name. */
export const publicRefusals: readonly RefusalCode[] = [
  ...creditRefusals,
  'not_found',
  'not_ended',
  'method_not_allowed',
];
