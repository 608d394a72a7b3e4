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
import { type Bucket, limit, reachBucket, statusOf } from './s3-bucket.ts';

/** The fields in which an object tells what was permitted. */
export interface Permitted {
  /** SHA-256 of the whole file, in hex. */
  readonly sha256: string;
  /** What S3 must say of an object whose parts are those of the permit. */
  readonly parts: string;
}

const signedSeconds = 3600;
/** S3 may work for a while on an object of many parts. */
const finishMilliseconds = 60_000;
const checksumHeader = 'x-amz-checksum-sha256';

/** Begins an upload, or goes on with the one that was begun, and signs a URL for each part that is not there yet. */
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
      const place = { Bucket: bucket.name, Key: key, UploadId: id, PartNumber: number };
      const command = new UploadPartCommand({ ...place, ContentLength: bytes, ChecksumSHA256: checksum });
      // In the query S3 would not check it.
      const options = { expiresIn: signedSeconds, unhoistableHeaders: new Set([checksumHeader]) };
      const url = await signUrl(() => getSignedUrl(bucket.client, command, options));
      return { url, headers: { [checksumHeader]: checksum }, start, bytes };
    }),
  );
}

/** Makes an object of the parts that S3 has; does nothing when no upload was begun, or when its parts make no object. */
export async function finishUpload(bucket: Bucket, key: string): Promise<void> {
  const [fullest, ...others] = await findUploads(bucket, key);
  if (fullest === undefined || fullest.parts.length === 0) return;
  // Dropped first, so that none of them is finished later over the object.
  for (const { id } of others) await dropUpload(bucket, key, id);
  const parts = fullest.parts.map(({ PartNumber, ETag, ChecksumSHA256 }) => ({ PartNumber, ETag, ChecksumSHA256 }));
  const place = { Bucket: bucket.name, Key: key, UploadId: fullest.id };
  const command = new CompleteMultipartUploadCommand({ ...place, MultipartUpload: { Parts: parts } });
  const asked = bucket.client.send(command, limit(finishMilliseconds)).catch((error: unknown) => {
    if (statusOf(error) === 400) return null;
    throw error;
  });
  await reachBucket(asked);
}

/** Drops every upload whose key begins with a prefix and that was begun before a time; gives their number. */
export async function dropUploads(bucket: Bucket, prefix: string, begunBefore: number): Promise<number> {
  let dropped = 0;
  for (const { Key, UploadId, Initiated } of await listUploads(bucket, prefix)) {
    if (!isObjectKey(Key) || (Initiated?.getTime() ?? 0) >= begunBefore) continue;
    await dropUpload(bucket, Key, UploadId);
    dropped += 1;
  }
  return dropped;
}

/** What S3 says of an object whose parts have these checksums. */
export function checksumOfParts(parts: readonly string[]): string {
  return `${hash('sha256', Buffer.from(parts.join(''), 'hex'), 'base64')}-${parts.length}`;
}

/** Signs a URL; that needs credentials, and these may have to be fetched. */
export async function signUrl(sign: () => Promise<string>): Promise<string> {
  const url = await reachBucket(sign());
  if (url === null) throw new Error('A URL cannot be absent');
  return url;
}

async function beginUpload({ client, name }: Bucket, key: string, upload: Upload): Promise<string> {
  const permitted: Permitted = { sha256: upload.sha256, parts: checksumOfParts(upload.parts) };
  const command = new CreateMultipartUploadCommand({
    ...{ Bucket: name, Key: key, ContentType: upload.content_type, Metadata: { ...permitted } },
    ...{ ChecksumAlgorithm: 'SHA256', ChecksumType: 'COMPOSITE' },
  });
  const begun = await reachBucket(client.send(command, limit()));
  if (begun?.UploadId === undefined) throw new Error('S3 began an upload without an id');
  return begun.UploadId;
}

/** Uploads of one key, first the one that has most: one whose beginning was repeated, because no answer came, stays empty. */
async function findUploads(bucket: Bucket, key: string): Promise<{ id: string; parts: PartThere[] }[]> {
  const found: { id: string; parts: PartThere[] }[] = [];
  for (const { Key, UploadId } of await listUploads(bucket, key)) {
    if (Key !== key || UploadId === undefined) continue;
    found.push({ id: UploadId, parts: await listParts(bucket, key, UploadId) });
  }
  const bytesOf = (parts: readonly PartThere[]) => parts.reduce((sum, { Size = 0 }) => sum + Size, 0);
  return found.sort((a, b) => bytesOf(b.parts) - bytesOf(a.parts));
}

async function dropUpload({ client, name }: Bucket, key: string, id: string | undefined): Promise<void> {
  await reachBucket(client.send(new AbortMultipartUploadCommand({ Bucket: name, Key: key, UploadId: id }), limit()));
}

async function listUploads({ client, name }: Bucket, prefix: string): Promise<MultipartUpload[]> {
  const uploads: MultipartUpload[] = [];
  const inside = { Bucket: name, Prefix: prefix };
  let after: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | null = {};
  while (after !== null) {
    const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({ ...inside, ...after });
    const page: ListMultipartUploadsCommandOutput | null = await reachBucket(client.send(command, limit()));
    uploads.push(...(page?.Uploads ?? []));
    const { NextKeyMarker, NextUploadIdMarker, IsTruncated } = page ?? {};
    const hasMore = IsTruncated === true && NextKeyMarker !== undefined;
    after = hasMore ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker } : null;
  }
  return uploads;
}

async function listParts({ client, name }: Bucket, key: string, id: string): Promise<PartThere[]> {
  const listed = await reachBucket(
    client.send(new ListPartsCommand({ Bucket: name, Key: key, UploadId: id }), limit()),
  );
  return listed?.Parts ?? [];
}
