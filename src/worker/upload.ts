import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { Failed, type Produced } from '../media/tools.ts';
import type { Delivered } from '../model/job.ts';
import { makeCall } from './call.ts';
import { type Gateway, Over, Refused, repeat } from './gateway.ts';
import type { Part } from './spec.ts';

const pieceBytes = 2 ** 18;

/** What was stored, and the marks that the object store gave for its parts. */
export interface Stored {
  readonly delivered: Delivered;
  readonly parts: readonly string[];
}

export interface UploadOptions {
  readonly gateway: Gateway;
  /** Nothing outside of it is ever uploaded. */
  readonly folder: string;
  readonly patienceSeconds: number;
  readonly signal: AbortSignal;
}

/** Stores a proved file where the gateway permits. Each try asks for a new permit, because permits expire. */
export async function uploadFile(produced: Produced, options: UploadOptions): Promise<Stored> {
  const { gateway, folder, patienceSeconds, signal } = options;
  const file = await openProduced(produced, folder);
  try {
    return await repeat(() => tryUpload(file, produced, gateway, signal), patienceSeconds, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Over || error instanceof Refused) throw error;
    throw new Failed('storage_unavailable', String(error));
  } finally {
    await file.close();
  }
}

/** The children wrote this file and its name: neither may lead out of their folder. */
async function openProduced({ file, bytes }: Produced, folder: string): Promise<FileHandle> {
  const real = await realpath(file);
  if (real !== file || !real.startsWith(`${await realpath(folder)}/`)) {
    throw new Failed('worker_failed', 'the produced file is a link');
  }
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stat = await handle.stat();
  if (stat.isFile() && stat.size === bytes) return handle;
  await handle.close();
  throw new Failed('worker_failed', 'the produced file has changed');
}

async function tryUpload(file: FileHandle, produced: Produced, gateway: Gateway, signal: AbortSignal): Promise<Stored> {
  const { bytes, sha256, content_type, ext } = produced;
  const { key, parts } = await gateway.askPermit({ bytes, sha256, content_type, ext });
  const delivered = { key, bytes, sha256, content_type };
  if (parts.length === 0) {
    await gateway.putObject(readPart(file, 0, bytes), { bytes, sha256, content_type, ext });
    return { delivered, parts: [] };
  }
  const marks: string[] = [];
  let start = 0;
  for (const part of parts) {
    marks.push(await putPart(file, start, part, signal));
    start += part.bytes;
  }
  if (start !== bytes) throw new Refused('The permit is for another size');
  return { delivered, parts: marks };
}

async function putPart(file: FileHandle, start: number, { url, headers, bytes }: Part, signal: AbortSignal) {
  const body = readPart(file, start, bytes);
  const sized = { ...headers, 'content-length': String(bytes) };
  const answer = await makeCall({ to: url, method: 'PUT', headers: sized, body, signal });
  if (answer.status < 200 || answer.status > 299) throw new Error(`The object store answered with ${answer.status}`);
  return answer.headers.etag ?? '';
}

/** A stream that leaves the file open at its end, so that the next try can read it again. */
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
