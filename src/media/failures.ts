import type { FailureCode } from '../base/errors.ts';
import { asRecord } from './info.ts';

/** An exception of yt-dlp, as the driver tells it. */
export interface Failure {
  /** Names of the exception's class and of those that caused it, outermost first. */
  readonly classes: readonly string[];
  readonly message: string;
  readonly stage: 'inspect' | 'fetch';
  readonly http: number | null;
  /** The extractor itself says that the page is to blame, not its own code. */
  readonly expected: boolean;
  /** What egress said, when it was egress that refused. */
  readonly verdict: string | null;
  /** Whether the file comes in many pieces, of which one may be missing. */
  readonly fragmented?: boolean;
}

/** Classes that say all by themselves. */
const byClass: Readonly<Record<string, FailureCode>> = {
  TooLarge: 'file_too_large',
  Playlist: 'playlist_only',
  UnsupportedError: 'unsupported_url',
  GeoRestrictedError: 'geo_blocked',
  UserNotLive: 'not_started',
  ContentTooShortError: 'source_broken',
};

/** Classes of broken connections, judged after the words. */
const transports = new Set(
  'TransportError IncompleteRead ProxyError SSLError CertificateVerifyError TimeoutError ConnectionResetError RemoteDisconnected RetryError'.split(
    ' ',
  ),
);

/** Words, in the order in which they decide. */
const byWords: readonly (readonly [FailureCode, RegExp])[] = [
  ['address_not_allowed', /tunnel connection failed: 403/i],
  ['source_incomplete', /fragment \d+ not found/i],
];

/** Reads what the driver tells of an exception. */
export function readFailure(json: unknown): Failure {
  const fields = asRecord(json);
  const causes = Array.isArray(fields.causes) ? fields.causes.map(String) : [];
  return {
    classes: Array.isArray(fields.class) ? fields.class.map(String) : [],
    message: [String(fields.message ?? ''), ...causes].join(' | '),
    stage: fields.stage === 'fetch' ? 'fetch' : 'inspect',
    http: typeof fields.http === 'number' ? fields.http : null,
    expected: fields.expected === true,
    verdict: typeof fields.verdict === 'string' ? fields.verdict : null,
  };
}

/** Finds the code of a failure: first what egress and the classes say, then the words, then the status, then the kind. */
export function classify(failure: Failure): FailureCode {
  if (failure.verdict?.startsWith('refused')) return 'address_not_allowed';
  if (failure.verdict !== null) return 'source_broken';
  const named = failure.classes.map((name) => byClass[name]).find((code) => code !== undefined);
  if (named !== undefined) return named;
  const worded = byWords.find(([, pattern]) => pattern.test(failure.message));
  if (worded !== undefined) return worded[0];
  const answered = failure.http === null ? null : byStatus(failure.http, failure);
  if (answered !== null) return answered;
  if (failure.classes.some((name) => transports.has(name))) return 'source_broken';
  return failure.stage === 'inspect' ? 'extractor_failed' : 'unclassified';
}

function byStatus(status: number, { stage, fragmented }: Failure): FailureCode | null {
  if (status === 404 || status === 410) return stage === 'fetch' && fragmented ? 'source_incomplete' : 'deleted';
  if (status === 401) return 'login_required';
  if (status === 451) return 'geo_blocked';
  if (status === 429) return 'source_rate_limited';
  if (status >= 500) return 'source_error';
  return status >= 400 ? 'source_blocked' : null;
}
