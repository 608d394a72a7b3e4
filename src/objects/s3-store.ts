import { createHash } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  paginateListObjectsV2,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { refuse } from '../base/errors.ts';
import {
  isObjectKey,
  isObjectPrefix,
  type LinkHeaders,
  type ObjectStore,
  type StoredObject,
  type Upload,
} from './object-store.ts';
import {
  type Bucket,
  type BucketSettings,
  callBucket,
  checkBucket,
  openBucket,
  statusOf,
  timeLimit,
} from './s3-bucket.ts';
import { abortUploads, finishUpload, type PermittedMetadata, permitParts, signUrl } from './s3-multipart.ts';

interface S3Options {
  readonly settings: BucketSettings;
  /** Bytes of every part but the last. */
  readonly partBytes: number;
  /** Returns true when workers upload through egress because the service has a public address. */
  readonly throughEgress: () => Promise<boolean>;
}

/** S3 allows 10,000 parts, but the gateway answers all signed URLs at once. */
const maxParts = 128;
const minPartBytes = 64 * 1024 ** 2;
const linkSeconds = 15 * 60;
/** Time limit for sending or reading a whole object. */
const wholeObjectTimeoutMs = 60_000;
/** Answer of S3 to a write with `If-None-Match: *` when the object exists. */
const preconditionFailed = 412;
const checksumPattern = /^[0-9a-f]{64}$/;

/** Returns the part size with which a file of so many bytes has at most 128 parts. */
export function partBytesFor(fileBytes: number): number {
  return Math.max(minPartBytes, Math.ceil(fileBytes / maxParts));
}

/**
 * Opens a bucket as an object store; nothing is asked of it yet. Only we make objects, never a worker: a permit that
 * outlives its attempt can neither change an object nor leave one behind.
 */
export function openS3({ settings, partBytes, throughEgress }: S3Options): ObjectStore {
  const bucket = openBucket(settings);
  return {
    partBytes,
    permit: async (key, upload, before = 0) => {
      if (!isObjectKey(key)) throw refuse('bad_request', 'Bad Request: nothing can be kept under this key');
      checkUpload(upload, partBytes);
      // A name that cannot be resolved means that the store cannot be reached.
      const through_egress = (await callBucket(throughEgress())) !== false;
      if (before > 0) await abortUploads(bucket, key, before);
      const parts = await permitParts(bucket, key, upload, partBytes);
      // A worker has none of what NODE_EXTRA_CA_CERTS names here.
      return { is: 'parts', key, through_egress, parts, authorities: getCACertificates('extra') };
    },
    receive: async () => {
      throw refuse('bad_request', 'Bad Request: files go to the storage itself, in parts');
    },
    finish: async (key) => isObjectKey(key) && finishUpload(bucket, key),
    see: (key) => seeObject(bucket, key),
    open: async (key, shown) => {
      const seen = await seeObject(bucket, key);
      return seen && { is: 'redirect', url: await signLink(bucket, key, shown) };
    },
    keep: (key, body) => keepObject(bucket, key, body),
    read: (key) => readObject(bucket, key),
    remove: async (prefix) => {
      if (!isObjectPrefix(prefix)) throw new Error(`${JSON.stringify(prefix)} is not what keys begin with`);
      await abortUploads(bucket, prefix, Number.POSITIVE_INFINITY);
      await removeObjects(bucket, prefix);
    },
    sweepTemporary: (before) => abortUploads(bucket, '', before),
    listNames: (prefix) => listNames(bucket, prefix),
  };
}

function checkUpload({ bytes, sha256, parts }: Upload, partBytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 1) throw refuse('bad_request', 'Bad Request: bytes must be 1 or more');
  const wanted = Math.ceil(bytes / partBytes);
  if (parts.length !== wanted) throw refuse('bad_request', `Bad Request: the file must have ${wanted} parts`);
  if (![sha256, ...parts].every((text) => checksumPattern.test(text)))
    throw refuse('bad_request', 'Bad Request: a checksum must be SHA-256 in hex');
}

async function seeObject(bucket: Bucket, key: string): Promise<StoredObject | null> {
  if (!isObjectKey(key)) return null;
  const command = new HeadObjectCommand({ Bucket: bucket.name, Key: key, ChecksumMode: 'ENABLED' });
  const head = await callBucket(bucket.client.send(command, timeLimit()));
  if (head === null) {
    // HEAD answers the same for a missing object and a missing bucket.
    await checkBucket(bucket);
    return null;
  }
  const { sha256, parts }: Partial<PermittedMetadata> = head.Metadata ?? {};
  const isPermitted = sha256 !== undefined && parts !== undefined && head.ChecksumSHA256 === parts;
  return { bytes: head.ContentLength ?? 0, checksum: isPermitted ? sha256 : null };
}

async function keepObject({ client, name }: Bucket, key: string, body: Uint8Array): Promise<void> {
  const checksum = createHash('sha256').update(body).digest();
  const [sha256, parts] = [checksum.toString('hex'), checksum.toString('base64')];
  const permitted: PermittedMetadata = { sha256, parts };
  const command = new PutObjectCommand({
    ...{ Bucket: name, Key: key, Body: body, ContentLength: body.length },
    ...{ ChecksumSHA256: parts, Metadata: { ...permitted }, IfNoneMatch: '*' },
  });
  const asked = client.send(command, timeLimit(wholeObjectTimeoutMs)).catch((error: unknown) => {
    if (statusOf(error) !== preconditionFailed) throw error;
  });
  await callBucket(asked);
}

async function readObject(bucket: Bucket, key: string): Promise<Buffer | null> {
  const seen = await seeObject(bucket, key);
  if (seen === null) return null;
  const read = async () => {
    const command = new GetObjectCommand({ Bucket: bucket.name, Key: key });
    const { Body } = await bucket.client.send(command, timeLimit(wholeObjectTimeoutMs));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  };
  return callBucket(read());
}

async function signLink(bucket: Bucket, key: string, { content_type, disposition }: LinkHeaders): Promise<string> {
  const command = new GetObjectCommand({
    ...{ Bucket: bucket.name, Key: key, ResponseCacheControl: 'private, no-store' },
    ...{ ResponseContentType: content_type, ResponseContentDisposition: disposition },
  });
  return signUrl(() =>
    getSignedUrl(bucket.publicClient, command, { expiresIn: linkSeconds, signingDate: bucket.now() }),
  );
}

async function* listNames({ client, name }: Bucket, prefix = ''): AsyncGenerator<readonly string[]> {
  let ContinuationToken: string | undefined;
  do {
    const command: ListObjectsV2Command = new ListObjectsV2Command({
      ...{ Bucket: name, Prefix: prefix, Delimiter: '/', ContinuationToken },
    });
    const page: ListObjectsV2CommandOutput | null = await callBucket(client.send(command, timeLimit()));
    yield (page?.CommonPrefixes ?? []).map(({ Prefix = '' }) => Prefix.slice(prefix.length, -1));
    ContinuationToken = page?.NextContinuationToken;
  } while (ContinuationToken !== undefined);
}

async function removeObjects({ client, name }: Bucket, prefix: string): Promise<void> {
  const keys: string[] = [];
  const list = async () => {
    const pages = paginateListObjectsV2({ client }, { Bucket: name, Prefix: prefix }, timeLimit());
    for await (const { Contents = [] } of pages) keys.push(...Contents.flatMap(({ Key }) => Key ?? []));
  };
  await callBucket(list());
  for (const Key of keys) await callBucket(client.send(new DeleteObjectCommand({ Bucket: name, Key }), timeLimit()));
}
