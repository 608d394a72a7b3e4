import { errorCodes } from './error-codes.ts';

/** Cause of an error: the request, the site of the source, or the service with the way to it. */
export type Blame = 'caller' | 'site' | 'us';

/** Codes of the service, and those that only a client can tell. */
export type ErrorCode = keyof typeof errorCodes | keyof typeof clientCodes | (string & {});

const clientCodes = {
  unreachable: { blame: 'us', retryable: true },
  not_trawl: { blame: 'caller', retryable: false },
  checksum_mismatch: { blame: 'us', retryable: true },
  bad_signature: { blame: 'caller', retryable: false },
} as const;

const causes: Readonly<Record<string, { readonly blame: Blame; readonly retryable: boolean }>> = {
  ...errorCodes,
  ...clientCodes,
};

/** Facts of an error beside its code and its sentence. */
export interface ErrorFacts {
  readonly status?: number | null;
  readonly jobId?: string | null;
  readonly requestId?: string | null;
  readonly retryAfterSeconds?: number | null;
  readonly retryable?: boolean;
  readonly cause?: unknown;
}

/** A call that was refused, a job that made no file, or a service that cannot be reached. */
export class TrawlError extends Error {
  override readonly name = 'TrawlError';
  readonly code: ErrorCode;
  readonly blame: Blame;
  /** True when the same request may succeed later. */
  readonly retryable: boolean;
  /** HTTP status of a refused call; `null` for a job and for a service that did not answer. */
  readonly status: number | null;
  readonly jobId: string | null;
  /** Id to quote to the operator. */
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(code: ErrorCode, sentence: string, facts: ErrorFacts = {}) {
    super(sentence, { cause: facts.cause });
    const known = causes[code];
    this.code = code;
    this.blame = known?.blame ?? ((facts.status ?? 500) >= 500 ? 'us' : 'caller');
    this.retryable = facts.retryable ?? known?.retryable ?? (facts.status ?? 0) >= 500;
    this.status = facts.status ?? null;
    this.jobId = facts.jobId ?? null;
    this.requestId = facts.requestId ?? null;
    this.retryAfterSeconds = facts.retryAfterSeconds ?? null;
  }
}
