import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import type { HttpRequest } from '../base/http-client.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { openRegular } from '../media/child-folder.ts';
import { Failed, type Produced } from '../media/tools.ts';
import type { UploadPart } from '../model/attempt-protocol.ts';
import type { Delivered } from '../model/outcome.ts';
import { AttemptOver, type GatewayClient, GatewayRefusal, repeat, send } from './gateway-client.ts';

const pieceBytes = 2 ** 18;
const partsAtOnce = 4;

interface UploadOptions {
  readonly gateway: GatewayClient;
  /** Egress proxy, for an object store with a public address. */
  readonly egress: ServerAddress;
  /** No file outside of this folder is uploaded. */
  readonly folder: string;
  /** Bytes of every part but the last; `null` when the file goes whole to the gateway. */
  readonly partBytes: number | null;
  /** Gives up when no part was stored for so long. */
  readonly patienceSeconds: number;
  /** Does not give up before this time of `performance.now`. */
  readonly earliestEndMs?: number;
  readonly signal: AbortSignal;
}

/** Uploads a proved file to where the gateway permits. Each try asks for a new permit, because permits expire. */
export async function uploadFile(produced: Produced, options: UploadOptions): Promise<Delivered> {
  const { folder, partBytes, patienceSeconds, earliestEndMs, signal } = options;
  await using file = await openProduced(produced, folder);
  try {
    const parts = partBytes === null ? [] : await hashParts(file, produced, partBytes);
    const store = (renew: () => void) => tryUpload({ file, produced, parts, renew }, options);
    return await repeat(store, patienceSeconds, signal, earliestEndMs);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AttemptOver || error instanceof GatewayRefusal || error instanceof Failed) throw error;
    throw new Failed('storage_unavailable', String(error));
  }
}

async function openProduced({ file, bytes }: Produced, folder: string): Promise<FileHandle> {
  if (dirname(file) !== folder) throw new Failed('worker_failed', 'the produced file is elsewhere');
  const handle = await openRegular(file);
  if ((await handle.stat()).size === bytes) return handle;
  await handle.close();
  throw new Failed('worker_failed', 'the produced file has changed');
}

/** Returns the checksums of the parts; throws when together they are not the file that was proved. */
async function hashParts(file: FileHandle, { bytes, sha256 }: Produced, partBytes: number): Promise<string[]> {
  const whole = createHash('sha256');
  const parts: string[] = [];
  for (let start = 0; start < bytes; start += partBytes) {
    const part = createHash('sha256');
    for await (const piece of readPieces(file, start, Math.min(start + partBytes, bytes))) {
      part.update(piece);
      whole.update(piece);
    }
    parts.push(part.digest('hex'));
  }
  if (whole.digest('hex') !== sha256) throw new Failed('worker_failed', 'the produced file has changed');
  return parts;
}

interface Try {
  readonly file: FileHandle;
  readonly produced: Produced;
  readonly parts: readonly string[];
  readonly renew: () => void;
}

async function tryUpload({ file, produced, parts, renew }: Try, options: UploadOptions): Promise<Delivered> {
  const { gateway, egress, signal } = options;
  const { bytes, sha256, content_type, ext } = produced;
  const permit = await gateway.askPermit({ bytes, sha256, content_type, ext, parts });
  const delivered = { key: permit.key, bytes, sha256, content_type };
  if (permit.parts === null) {
    await gateway.putObject(readPart(file, 0, bytes), { bytes, sha256, content_type, ext });
    return delivered;
  }
  const left = [...permit.parts];
  const way = { proxy: permit.through_egress ? egress : null, authorities: permit.authorities ?? [] };
  const putSome = async () => {
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      if (part.start + part.bytes > bytes) throw new GatewayRefusal('The permit is for another size');
      await putPart(file, part, way, signal).catch((error) => {
        left.length = 0;
        throw error;
      });
      renew();
    }
  };
  // After a failure, parts under way still arrive; the next permit leaves them out.
  const ends = await Promise.allSettled(Array.from({ length: partsAtOnce }, putSome));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return delivered;
}

async function putPart(
  file: FileHandle,
  part: UploadPart,
  way: Pick<HttpRequest, 'proxy' | 'authorities'>,
  signal: AbortSignal,
): Promise<void> {
  const { url, start, bytes } = part;
  const body = readPart(file, start, bytes);
  const headers = { ...part.headers, 'content-length': String(bytes) };
  const { status } = await send({ ...way, to: new URL(url), method: 'PUT', headers, body, signal });
  if (status < 200 || status > 299) throw new Error(`The object store answered with ${status}`);
}

/** Returns a stream that leaves the file open at its end, so that the next try can read it again. */
function readPart(file: FileHandle, start: number, bytes: number): Readable {
  return Readable.from(readPieces(file, start, start + bytes), { objectMode: false });
}

async function* readPieces(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  for (let at = start; at < end; ) {
    const length = Math.min(pieceBytes, end - at);
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(length), length, position: at });
    if (bytesRead === 0) throw new Error('The file is shorter than it was');
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
