import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { Config } from '../base/config.ts';
import { refuseWithout } from '../base/errors.ts';
import { followCredentialsFile } from './s3-credentials.ts';

/** Settings of the bucket of finished files. The SDK finds the credentials. */
export type BucketSettings = Pick<Config, 's3Bucket' | 's3Endpoint' | 's3PublicEndpoint' | 's3Region' | 's3PathStyle'>;

/** A bucket with one client for our own requests and one that signs links for callers. */
export type Bucket = ReturnType<typeof openBucket>;

const callTimeoutMs = 10_000;
/** Error names of S3 for a missing object or upload in an existing bucket. */
const missingErrors = ['NotFound', 'NoSuchKey', 'NoSuchUpload'];
/** Most services other than AWS have only this region. */
const defaultRegion = 'us-east-1';

/** Returns a bucket; sends no request yet. */
export function openBucket(settings: BucketSettings) {
  const { s3Bucket, s3Endpoint, s3PublicEndpoint } = settings;
  if (s3Bucket === null) throw new Error('TRAWL_S3_BUCKET is needed here.');
  const client = openClient(settings, s3Endpoint);
  return {
    /** The clock of S3, as the SDK knows it from its answers: S3 refuses URLs that were signed by one that is off. */
    now: () => new Date(Date.now() + client.config.systemClockOffset),
    name: s3Bucket,
    client,
    publicClient: s3PublicEndpoint === null ? client : openClient(settings, s3PublicEndpoint),
  };
}

/** Awaits a call of S3; returns `null` for a missing object. Every other error becomes the refusal `unavailable`. */
export async function callBucket<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (missingErrors.includes(nameOf(error))) return null;
    // An answer of S3 may repeat the access key and the signed text, so only the name of the error is passed on.
    throw unreachable(wordsOf(error));
  }
}

function unreachable(why: string) {
  return refuseWithout('object store', new Error(why), 'The storage of finished files cannot be reached');
}

/** Throws when the bucket itself is missing: then nothing is known about its objects. */
export async function checkBucket({ client, name }: Bucket): Promise<void> {
  const found = await callBucket(client.send(new HeadBucketCommand({ Bucket: name }), timeLimit()));
  if (found === null) throw unreachable(`There is no bucket ${name}`);
}

/** Returns the option that limits the time of one call, with its retries. */
export function timeLimit(milliseconds = callTimeoutMs): { readonly abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(milliseconds) };
}

/** Returns the HTTP status of S3's answer; 0 without an answer. */
export function statusOf(error: unknown): number {
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  return $metadata?.httpStatusCode ?? 0;
}

function openClient({ s3Region, s3PathStyle }: BucketSettings, endpoint: string | null): S3Client {
  const region = s3Region ?? (endpoint === null ? null : defaultRegion);
  const { AWS_SHARED_CREDENTIALS_FILE: file, AWS_ACCESS_KEY_ID: key } = process.env;
  return new S3Client({
    ...(file && !key ? { credentials: followCredentialsFile() } : {}),
    ...(endpoint === null ? {} : { endpoint }),
    ...(region === null ? {} : { region }),
    forcePathStyle: s3PathStyle,
    // We set checksums ourselves: not every service knows those that the SDK would add.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}

/** Returns the name of S3's error; '' for what is none. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function wordsOf(error: unknown): string {
  const status = statusOf(error);
  if (status > 0) return `S3 answered ${nameOf(error)} (${status})`;
  // The SDK calls a broken connection a timeout too, so only an abort counts as one.
  if (nameOf(error) === 'AbortError') return 'S3 did not answer in time';
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
