import { hash } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  type ListMultipartUploadsCommandOutput,
  ListPartsCommand,
  type MultipartUpload,
  type Part as PartThere,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { UploadPart } from '../model/attempt-protocol.ts';
import { isObjectKey, type Upload } from './object-store.ts';
import { type Bucket, callBucket, nameOf, statusOf, timeLimit } from './s3-bucket.ts';

/** Metadata of an object that hold what its permit allowed. */
export interface PermittedMetadata {
  /** SHA-256 of the whole file, in hex. */
  readonly sha256: string;
  /** Checksum that S3 must report for an object made of the permitted parts. */
  readonly parts: string;
}

const partUrlSeconds = 3600;
/** S3 needs time to join an object of many parts. */
const finishTimeoutMs = 60_000;
/** Errors of status 400 that tell of the service or of our credentials, not of the parts. */
const passingErrors = /^(KMS\.|RequestTimeout$|ExpiredToken$)/;
const checksumHeader = 'x-amz-checksum-sha256';

/** Begins or continues an upload and signs a URL for each missing part. */
export async function permitParts(
  bucket: Bucket,
  key: string,
  upload: Upload,
  partBytes: number,
): Promise<UploadPart[]> {
  const [begun] = await findUploads(bucket, key);
  const { id, parts: there } = begun ?? { id: await beginUpload(bucket, key, upload), parts: [] };
  const missing = upload.parts
    .map((sha256, index) => ({
      number: index + 1,
      start: index * partBytes,
      bytes: Math.min(partBytes, upload.bytes - index * partBytes),
      checksum: Buffer.from(sha256, 'hex').toString('base64'),
    }))
    .filter(
      ({ number, checksum }) => there.find(({ PartNumber }) => PartNumber === number)?.ChecksumSHA256 !== checksum,
    );
  return Promise.all(
    missing.map(async ({ number, start, bytes, checksum }) => {
      const target = { Bucket: bucket.name, Key: key, UploadId: id, PartNumber: number };
      const command = new UploadPartCommand({ ...target, ContentLength: bytes, ChecksumSHA256: checksum });
      // S3 checks the header, but not the same value in the query.
      const options = {
        ...{ expiresIn: partUrlSeconds, signingDate: bucket.now() },
        unhoistableHeaders: new Set([checksumHeader]),
      };
      const url = await signUrl(() => getSignedUrl(bucket.client, command, options));
      return { url, headers: { [checksumHeader]: checksum }, start, bytes };
    }),
  );
}

/** Joins the uploaded parts into the object; returns false without an upload, and when its parts make no object. */
export async function finishUpload(bucket: Bucket, key: string): Promise<boolean> {
  const [fullest, ...others] = await findUploads(bucket, key);
  if (fullest === undefined || fullest.parts.length === 0) return false;
  // Aborted first, so that none of them can later overwrite the object.
  for (const { id } of others) await abortUpload(bucket, key, id);
  const parts = fullest.parts.map(({ PartNumber, ETag, ChecksumSHA256 }) => ({ PartNumber, ETag, ChecksumSHA256 }));
  const target = { Bucket: bucket.name, Key: key, UploadId: fullest.id };
  const command = new CompleteMultipartUploadCommand({ ...target, MultipartUpload: { Parts: parts } });
  const asked = bucket.client.send(command, timeLimit(finishTimeoutMs)).catch((error: unknown) => {
    if (statusOf(error) === 400 && !passingErrors.test(nameOf(error))) return null;
    throw error;
  });
  return (await callBucket(asked)) !== null;
}

/** Aborts every upload whose key begins with a prefix and that was begun before a time; returns their number. */
export async function abortUploads(bucket: Bucket, prefix: string, begunBefore: number): Promise<number> {
  let dropped = 0;
  for (const { Key, UploadId, Initiated } of await listUploads(bucket, prefix)) {
    if (!isObjectKey(Key) || (Initiated?.getTime() ?? 0) >= begunBefore) continue;
    await abortUpload(bucket, Key, UploadId);
    dropped += 1;
  }
  return dropped;
}

/** Returns the checksum that S3 reports for an object whose parts have these checksums. */
function checksumOfParts(parts: readonly string[]): string {
  return `${hash('sha256', Buffer.from(parts.join(''), 'hex'), 'base64')}-${parts.length}`;
}

/** Signs a URL; for that the SDK may have to fetch credentials. */
export async function signUrl(sign: () => Promise<string>): Promise<string> {
  const url = await callBucket(sign());
  if (url === null) throw new Error('A URL cannot be absent');
  return url;
}

async function beginUpload({ client, name }: Bucket, key: string, upload: Upload): Promise<string> {
  const permitted: PermittedMetadata = { sha256: upload.sha256, parts: checksumOfParts(upload.parts) };
  const command = new CreateMultipartUploadCommand({
    ...{ Bucket: name, Key: key, ContentType: upload.content_type, Metadata: { ...permitted } },
    ...{ ChecksumAlgorithm: 'SHA256', ChecksumType: 'COMPOSITE' },
  });
  const begun = await callBucket(client.send(command, timeLimit()));
  if (begun?.UploadId === undefined) throw new Error('S3 began an upload without an id');
  return begun.UploadId;
}

/** Returns the uploads of one key, the one with most bytes first: a repeated request to begin leaves an empty upload. */
async function findUploads(bucket: Bucket, key: string): Promise<{ id: string; parts: PartThere[] }[]> {
  const found: { id: string; parts: PartThere[] }[] = [];
  for (const { Key, UploadId } of await listUploads(bucket, key)) {
    if (Key !== key || UploadId === undefined) continue;
    found.push({ id: UploadId, parts: await listParts(bucket, key, UploadId) });
  }
  const bytesOf = (parts: readonly PartThere[]) => parts.reduce((sum, { Size = 0 }) => sum + Size, 0);
  return found.sort((a, b) => bytesOf(b.parts) - bytesOf(a.parts));
}

async function abortUpload({ client, name }: Bucket, key: string, id: string | undefined): Promise<void> {
  await callBucket(client.send(new AbortMultipartUploadCommand({ Bucket: name, Key: key, UploadId: id }), timeLimit()));
}

async function listUploads({ client, name }: Bucket, prefix: string): Promise<MultipartUpload[]> {
  const uploads: MultipartUpload[] = [];
  const inside = { Bucket: name, Prefix: prefix };
  let after: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | null = {};
  while (after !== null) {
    const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({ ...inside, ...after });
    const page: ListMultipartUploadsCommandOutput | null = await callBucket(client.send(command, timeLimit()));
    uploads.push(...(page?.Uploads ?? []));
    const { NextKeyMarker, NextUploadIdMarker, IsTruncated } = page ?? {};
    const hasMore = IsTruncated === true && NextKeyMarker !== undefined;
    after = hasMore ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker } : null;
  }
  return uploads;
}

async function listParts({ client, name }: Bucket, key: string, id: string): Promise<PartThere[]> {
  const listed = await callBucket(
    client.send(new ListPartsCommand({ Bucket: name, Key: key, UploadId: id }), timeLimit()),
  );
  return listed?.Parts ?? [];
}
