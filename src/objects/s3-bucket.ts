import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { Config } from '../base/config.ts';
import { refuse } from '../base/errors.ts';

/** Which bucket finished files are kept in, and how it is reached. Its credentials are found by the SDK. */
export type BucketSettings = Pick<Config, 's3Bucket' | 's3Endpoint' | 's3PublicEndpoint' | 's3Region' | 's3PathStyle'>;

/** A bucket, as we reach it and as callers do. */
export interface Bucket {
  readonly name: string;
  readonly client: S3Client;
  readonly publicClient: S3Client;
}

const limitMilliseconds = 10_000;
/** What S3 says when the thing that was asked for is not there, while the bucket is. */
const absent = ['NotFound', 'NoSuchKey', 'NoSuchUpload'];
/** Services that are not of AWS mostly have but one region, and this is its name. */
const usualRegion = 'us-east-1';

/** Prepares the ways to a bucket; nothing is asked yet. */
export function openBucket(settings: BucketSettings): Bucket {
  const { s3Bucket, s3Endpoint, s3PublicEndpoint } = settings;
  if (s3Bucket === null) throw new Error('TRAWL_S3_BUCKET is needed here.');
  const client = openClient(settings, s3Endpoint);
  return {
    name: s3Bucket,
    client,
    publicClient: s3PublicEndpoint === null ? client : openClient(settings, s3PublicEndpoint),
  };
}

/** Waits for S3; gives `null` when what was asked for is not there. Whatever else goes wrong becomes the refusal `unavailable`. */
export async function reachBucket<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (absent.includes(nameOf(error))) return null;
    // What S3 answers may repeat the key's name and what was signed, so only its words for the fault are passed on.
    const cause = new Error(wordsOf(error));
    throw Object.assign(refuse('unavailable', 'The storage of finished files cannot be reached'), { cause });
  }
}

/** Fails when the bucket itself is not there: then nothing is known about what should be in it. */
export async function checkBucket({ client, name }: Bucket): Promise<void> {
  const found = await reachBucket(client.send(new HeadBucketCommand({ Bucket: name }), limit()));
  if (found !== null) return;
  throw Object.assign(refuse('unavailable', 'The storage of finished files cannot be reached'), {
    cause: new Error(`There is no bucket ${name}`),
  });
}

/** Bounds one call, its repetitions included. */
export function limit(milliseconds = limitMilliseconds): { readonly abortSignal: AbortSignal } {
  return { abortSignal: AbortSignal.timeout(milliseconds) };
}

/** The status that S3 answered with; 0 when it did not answer. */
export function statusOf(error: unknown): number {
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  return $metadata?.httpStatusCode ?? 0;
}

function openClient({ s3Region, s3PathStyle }: BucketSettings, endpoint: string | null): S3Client {
  const region = s3Region ?? (endpoint === null ? null : usualRegion);
  return new S3Client({
    ...(endpoint === null ? {} : { endpoint }),
    ...(region === null ? {} : { region }),
    forcePathStyle: s3PathStyle,
    // Checksums are our own: not every service knows those that the SDK would add.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function wordsOf(error: unknown): string {
  const status = statusOf(error);
  if (status > 0) return `S3 answered ${nameOf(error)} (${status})`;
  // The SDK also calls a connection that broke off a timeout, so its own word for that is passed on.
  if (nameOf(error) === 'AbortError') return 'S3 did not answer in time';
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
