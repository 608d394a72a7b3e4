import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { codeOf, refuse } from '../base/errors.ts';
import type { Seal } from '../base/seal.ts';
import { isHeld, readRange } from '../model/byte-range.ts';
import { isContentType } from '../model/content-types.ts';
import { checkLink, dispositionOf } from '../model/file-link.ts';
import type { Job } from '../model/job.ts';
import type { Delivered } from '../model/outcome.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { KeylessCall, OpenHandler } from './api-call.ts';
import { type ApiReply, errorReply } from './reply.ts';

export interface FileRoutes {
  readonly verify: Seal['verify'];
  readonly readJob: (jobId: string) => Promise<Job | null>;
  readonly objects: Pick<ObjectStore, 'see' | 'open'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

type HeaderFields = Readonly<Record<string, string | number>>;
type ShownFields = HeaderFields & { readonly 'content-type': string; readonly 'content-disposition': string };

const caching = 'private, no-store';

/** GET or HEAD of a result link: the file, a part of it, or why not (D23, D68, D85). */
export function deliverFile(routes: FileRoutes): OpenHandler {
  return async (call) => {
    const { req, res } = call;
    const link = checkLink(req.url, routes.now(), routes.verify);
    if (link.is === 'altered') throw refuse('forbidden');
    if (link.is === 'expired') return gone('this link has expired');
    const job = await routes.readJob(link.job);
    if (!job?.delivered || job.removed_at !== null) return gone('the file was removed');
    const etag = `"${job.delivered.sha256}"`;
    const headers = { ...call.headers, ...headersOf(job.delivered, link.name, etag) };
    if (isHeld(req.headers, etag)) return end(res, 304, headers);
    return req.method === 'HEAD'
      ? headFile(routes, res, job.delivered, headers)
      : sendFile(routes, call, job.delivered, headers);
  };
}

async function headFile(routes: FileRoutes, res: ServerResponse, { key, bytes }: Delivered, headers: HeaderFields) {
  if ((await routes.objects.see(key)) === null) return lost();
  return end(res, 200, { ...headers, 'content-length': bytes });
}

async function sendFile(
  routes: FileRoutes,
  { req, res, headers: usual }: KeylessCall,
  { key, bytes }: Delivered,
  headers: ShownFields,
) {
  const asked = readRange(req.headers, bytes, String(headers.etag));
  if (asked === 'unsatisfiable') return unsatisfiable(bytes);
  const range = asked === 'whole' ? undefined : asked;
  const shown = { content_type: headers['content-type'], disposition: headers['content-disposition'] };
  const opened = await routes.objects.open(key, shown, range);
  if (opened === null) return lost();
  if (opened.is === 'redirect') return end(res, 307, { ...usual, location: opened.url, 'cache-control': caching });
  try {
    if (opened.bytes !== bytes) throw new Error(`${key} has ${opened.bytes} bytes, and ${bytes} were delivered`);
    const { first, last } = range ?? { first: 0, last: bytes - 1 };
    const part = range && { 'content-range': `bytes ${first}-${last}/${bytes}` };
    res.writeHead(range ? 206 : 200, { ...headers, ...part, 'content-length': last - first + 1 });
    await pipeline(opened.stream, res);
  } catch (error) {
    if (!isGone(error)) throw error;
  } finally {
    // When the caller was gone before it began, the pipeline does not close the file.
    opened.stream.destroy();
  }
  return null;
}

/** Returns true for the errors of a caller that is gone or reads nothing: neither is a failure of the API. */
export function isGone(error: unknown): boolean {
  return ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE'].includes(codeOf(error));
}

/** Returns the headers that make a browser save the file, never run it or show it as a page of this origin. */
function headersOf({ content_type: type }: Delivered, name: string, etag: string): ShownFields {
  return {
    'content-type': isContentType(type) ? type : 'application/octet-stream',
    'content-disposition': dispositionOf(name),
    'accept-ranges': 'bytes',
    etag,
    'cache-control': caching,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    // The link itself is the permission: pages of its holder may play the file.
    'cross-origin-resource-policy': 'cross-origin',
    // nginx would store a gigabyte and read no more until its caller has read all of that: to `unreadMs` it reads nothing.
    'x-accel-buffering': 'no',
  };
}

function end(res: ServerResponse, status: number, headers: HeaderFields): null {
  res.writeHead(status, headers).end();
  return null;
}

function unsatisfiable(bytes: number): ApiReply {
  const reply = errorReply(refuse('bad_request', `Range Not Satisfiable: the file has ${bytes} bytes`));
  return { ...reply, status: 416, headers: { ...reply.headers, 'content-range': `bytes */${bytes}` } };
}

function lost(): ApiReply {
  return gone('the file is not there any more');
}

function gone(why: string): ApiReply {
  return { ...errorReply(refuse('not_found', `Gone: ${why}`)), status: 410 };
}
