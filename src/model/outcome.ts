import { type FailureCode, isFailureCode } from '../base/errors.ts';
import { membersOf } from '../base/parse-json.ts';
import { isContentType } from './content-types.ts';
import { type Metadata, metadataFields, readMetadata } from './metadata.ts';

/** File of a job, as proved by the worker and confirmed by the object store. */
export interface Delivered {
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly content_type: string;
}

/** End of an attempt. `delivered` is null when only metadata was asked for; `detail` is what the programs said, for the log alone. */
export type Outcome =
  | { readonly is: 'done'; readonly metadata: Metadata; readonly delivered: Delivered | null }
  | { readonly is: 'failed'; readonly code: FailureCode; readonly text?: string; readonly detail?: string }
  | { readonly is: 'interrupted'; readonly reason: string };

const maxTextLength = 600;
export const maxDetailLength = 2_000;
export const maxKeyLength = 200;
/** Kubernetes cuts what is longer. */
const maxTerminationBytes = 4096;

/** These are for the controller to find, never for a worker to say. */
const controllerOnly: readonly FailureCode[] = ['cancelled', 'queue_timeout', 'worker_lost'];

/** Returns the prefix of every object key that an attempt may upload to. */
export function objectPrefix(jobId: string, attempt: number): string {
  return `${jobId}/${attempt}/`;
}

/** Checks the verdict of a worker; null unless it fits the contract and every limit. */
export function readVerdict(json: unknown): Outcome | null {
  const { is, metadata, delivered, code, text, reason } = membersOf(json);
  switch (is) {
    case 'done':
      return readDone(metadata, delivered);
    case 'failed':
      return readFailed(code, text);
    case 'interrupted':
      return typeof reason === 'string' ? { is, reason: cleanText(reason) } : null;
    default:
      return null;
  }
}

/**
 * Returns an outcome as JSON of at most 4 KB; drops the least important fields first. Everyone who may read pods can read
 * it, so it holds no URL: the query of a URL may be a secret.
 */
export function writeTerminationMessage(outcome: Outcome): string {
  if (outcome.is !== 'done') return JSON.stringify({ ...outcome, detail: undefined });
  let { metadata } = outcome;
  for (const [name, kind] of Object.entries(metadataFields)) {
    if (kind === 'url') metadata = { ...metadata, [name]: null };
  }
  for (const name of ['description', 'title', 'channel', 'id'] as const) {
    const text = JSON.stringify({ ...outcome, metadata });
    if (Buffer.byteLength(text) <= maxTerminationBytes) return text;
    metadata = { ...metadata, [name]: null };
  }
  return JSON.stringify({ ...outcome, metadata });
}

/** Returns what the programs of a failed attempt said last, without the paths of URLs and on one line; '' when the verdict tells nothing of it. */
export function readDetail(json: unknown): string {
  const { detail: said } = membersOf(json);
  const detail = typeof said === 'string' ? said : '';
  const maxLength = 4 * maxDetailLength;
  // Where the text is cut, the rest of a URL would not look like one.
  const end = detail.length > maxLength ? detail.slice(-maxLength).replace(/^\S*/, '') : detail;
  return end
    .replace(/(:\/\/)(?:[^\s/?#'"]*@)?([^\s/?#'"]*)[^\s'"]*/g, '$1$2/…')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(-maxDetailLength)
    .toWellFormed();
}

function readDone(saidMetadata: unknown, saidDelivered: unknown): Outcome | null {
  const metadata = readMetadata(saidMetadata);
  if (metadata === null) return null;
  if (saidDelivered === null) return { is: 'done', metadata, delivered: null };
  const delivered = readDelivered(saidDelivered);
  return delivered && { is: 'done', metadata, delivered };
}

function readFailed(code: unknown, text: unknown): Outcome | null {
  if (typeof code !== 'string') return null;
  const known = isFailureCode(code) && !controllerOnly.includes(code) ? code : 'unclassified';
  if (text === undefined || text === null) return { is: 'failed', code: known };
  if (typeof text !== 'string') return null;
  const clean = cleanText(text);
  return clean === '' ? { is: 'failed', code: known } : { is: 'failed', code: known, text: clean };
}

function readDelivered(said: unknown): Delivered | null {
  const { key, bytes, sha256, content_type } = membersOf(said);
  if (typeof key !== 'string' || !isKey(key)) return null;
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 1) return null;
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return null;
  if (typeof content_type !== 'string' || !isContentType(content_type)) return null;
  return { key, bytes, sha256, content_type };
}

/** A key is also a path in a folder: no part of it begins with a dot or is empty. */
function isKey(key: string): boolean {
  return key.length <= maxKeyLength && /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/.test(key);
}

function cleanText(text: string): string {
  return text
    .slice(0, 4 * maxTextLength)
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, maxTextLength)
    .trimEnd()
    .toWellFormed();
}
