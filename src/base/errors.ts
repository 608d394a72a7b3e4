/** Cause of a failure: decides billing, retry, statistics and alerts at once. */
export type Blame = 'caller' | 'site' | 'us';

/** Answers to callers and operators whose request is not carried out. Scripts answer with these codes. */
export const refusals = {
  bad_request: { status: 400, sentence: 'Bad Request' },
  invalid_api_key: { status: 401, sentence: 'Invalid API Key' },
  inactive_api_key: { status: 401, sentence: 'Inactive API Key' },
  expired_api_key: { status: 401, sentence: 'Expired API Key' },
  key_quota_exceeded: { status: 401, sentence: 'Rate limit exceeded for the API key: quota' },
  sign_in_required: { status: 401, sentence: 'Sign in first' },
  sign_in_failed: {
    status: 401,
    sentence: 'The sign-in failed: e-mail address or password is wrong, or the link was used or is too old',
  },
  payment_required: { status: 402, sentence: 'Payment required' },
  ip_blocked: { status: 403, sentence: 'IP temporarily blocked' },
  forbidden: { status: 403, sentence: 'Forbidden' },
  not_found: { status: 404, sentence: 'Not Found' },
  method_not_allowed: { status: 405, sentence: 'Method Not Allowed' },
  idempotency_conflict: { status: 409, sentence: 'This Idempotency-Key is in use by another request' },
  not_ended: { status: 409, sentence: 'The job has not ended yet' },
  already_exists: { status: 409, sentence: 'This name is taken' },
  too_many: { status: 409, sentence: 'There are as many as there may be' },
  in_use: { status: 409, sentence: 'It is still in use' },
  other_account: {
    status: 409,
    sentence: 'Another account was chosen meanwhile, such as in another tab: load the page again. Nothing was changed',
  },
  has_open_jobs: { status: 409, sentence: 'The account has open jobs' },
  key_has_history: { status: 409, sentence: 'The key has been used: its history is kept, deactivate it instead' },
  topup_incomplete: { status: 409, sentence: 'Automatic top-up needs a pack, a price and a payment method' },
  paid_plan_only: { status: 409, sentence: 'Automatic top-up needs a paid plan' },
  no_provider: { status: 409, sentence: 'No payment provider is configured' },
  payload_too_large: { status: 413, sentence: 'Payload Too Large' },
  rate_limited: { status: 429, sentence: 'You have exceeded the rate limit on your subscription' },
  internal_error: { status: 500, sentence: 'Internal Error' },
  unavailable: { status: 503, sentence: 'Service Unavailable' },
  draining: {
    status: 503,
    sentence:
      'The service is being drained for maintenance: what it has goes on, but it takes nothing new. Try again later',
  },
} as const satisfies Record<string, { status: number; sentence: string }>;

export type RefusalCode = keyof typeof refusals;

/** The statuses of a job that did not complete (D16). */
export type FailedStatus = 'Error' | 'NotFound' | 'BadRequest';

export const failures = {
  address_not_allowed: row('caller', false, 'BadRequest', 400, 'The address of this URL is not allowed'),
  age_restricted: row('caller', false, 'Error', 400, 'This content is age restricted and cannot be downloaded'),
  cancelled: row('caller', false, 'Error', 400, 'Cancelled'),
  deleted: row('caller', false, 'NotFound', 404, 'The source says that this content does not exist or was deleted'),
  drm_protected: row('caller', false, 'BadRequest', 400, 'This content is protected by DRM and cannot be downloaded'),
  extractor_failed: row('us', true, 'Error', 500, 'The page of this content could not be understood'),
  file_damaged: row('site', false, 'Error', 500, 'The source delivered a damaged or incomplete file'),
  file_too_large: row('site', false, 'Error', 500, 'The file is larger than this service allows'),
  geo_blocked: row('caller', false, 'Error', 400, 'This content is not available in the region of this service'),
  live_unbounded: row(
    'caller',
    false,
    'BadRequest',
    400,
    'This is a live stream: max_duration or end is needed to record it',
  ),
  login_required: row('caller', false, 'Error', 400, 'This content needs a login at its source'),
  members_only: row('caller', false, 'Error', 400, 'This content is for members of its source only'),
  no_audio: row('caller', false, 'Error', 400, 'This content has no sound'),
  no_video: row('caller', false, 'Error', 400, 'This content has no picture'),
  not_started: row('caller', true, 'Error', 400, 'This content has not started yet'),
  playlist_only: row('caller', false, 'BadRequest', 400, 'This URL names a playlist, not a single video or sound'),
  private: row('caller', false, 'Error', 400, 'This content is private'),
  queue_timeout: row('us', true, 'Error', 500, 'The job waited too long in the queue'),
  source_blocked: row('site', false, 'Error', 500, 'The source refused the download'),
  source_broken: row('site', true, 'Error', 500, 'The source could not be reached, or the connection to it broke off'),
  source_bot_check: row('site', false, 'Error', 500, 'The source asks for proof of being human'),
  source_error: row('site', true, 'Error', 500, 'The source answered with a server error'),
  source_incomplete: row('site', false, 'Error', 500, 'The source did not deliver all parts of the content'),
  source_rate_limited: row('site', true, 'Error', 500, 'The source refuses more downloads for now'),
  start_beyond_end: row('caller', false, 'BadRequest', 400, 'This content ends before the wanted start'),
  storage_unavailable: row('us', true, 'Error', 500, 'The storage of finished files could not be reached'),
  timeout: row('us', true, 'Error', 500, 'The job took longer than its time limit'),
  too_slow: row('site', true, 'Error', 500, 'The source delivered too slowly'),
  unclassified: row('us', true, 'Error', 500, 'The download failed for a reason that is not known yet'),
  unsupported_url: row('caller', false, 'BadRequest', 400, 'This URL is not supported: no media was found there'),
  video_unavailable: row('caller', false, 'Error', 404, 'This content is unavailable'),
  worker_failed: row('us', true, 'Error', 500, 'The worker failed'),
  worker_lost: row('us', true, 'Error', 500, 'The worker was interrupted too often'),
} as const;

export type FailureCode = keyof typeof failures;

function row(blame: Blame, retryable: boolean, status: FailedStatus, log: 400 | 404 | 500, sentence: string) {
  return { blame, retryable, status, log, sentence };
}

/** Parts that requests need besides the process that answers them. */
export type NeededPart = 'redis' | 'inspector' | 'object store';

export class Refusal extends Error {
  readonly code: RefusalCode;
  /** The part that did not answer: the cause of an `unavailable`. */
  declare readonly part?: NeededPart;
  /** Time after which it may be tried again, where that is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: RefusalCode, sentence?: string, retryAfterSeconds?: number) {
    super(sentence ?? refusals[code].sentence);
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** `unavailable` for a request that was sent and whose answer did not come: it may have been carried out. */
export class LostAnswer extends Refusal {}

export function refuse(code: RefusalCode, sentence?: string, retryAfterSeconds?: number): Refusal {
  return new Refusal(code, sentence, retryAfterSeconds);
}

/** Returns `unavailable` for a part that did not answer, with its error. */
export function refuseWithout(part: NeededPart, cause: unknown, sentence?: string): Refusal {
  return Object.assign(refuse('unavailable', sentence), { cause, part });
}

export function isRefusalCode(word: unknown): word is RefusalCode {
  return typeof word === 'string' && Object.hasOwn(refusals, word);
}

export function isFailureCode(word: unknown): word is FailureCode {
  return typeof word === 'string' && Object.hasOwn(failures, word);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the code of an error of the system or of Node, such as ENOENT; '' for any other error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Returns the cause at the bottom of an error: it is the most specific one. */
export function innermost(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}

/** Returns a handler of a failure that gives `null` for the refusal with this code, and throws any other error. */
export function nullWhen(code: RefusalCode): (error: unknown) => null {
  return (error) => {
    if (isRefusal(error, code)) return null;
    throw error;
  };
}

export function isRefusal(error: unknown, ...codes: readonly RefusalCode[]): error is Refusal {
  return error instanceof Refusal && codes.includes(error.code);
}
