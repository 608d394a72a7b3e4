import { type ClientRequest, type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Address } from '../base/kinds.ts';

/** One HTTP request; `to` is an address of ours with a path, or the whole URL of an object store. */
export interface Call {
  readonly to: { readonly address: Address; readonly path: string } | string;
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  /** A text, or the bytes of a file, of which `content-length` in the headers tells the number. */
  readonly body: string | Readable;
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

const longestAnswer = 2 ** 18;
/** A connection on which nothing moves for so long is given up. */
const idleMilliseconds = 30_000;

/** Makes one request and reads its answer. Throws when there is none, when it is too long, or when the signal fires. */
export async function makeCall({ to, method, headers, body, signal }: Call): Promise<Answer> {
  const request = openRequest(to, { method, headers, signal, timeout: idleMilliseconds, agent: false });
  request.on('timeout', () => request.destroy(new Error('Nothing was heard for too long')));
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.on('response', resolve).on('error', reject);
  if (typeof body === 'string') request.end(body);
  // A server may refuse before it has read everything: its answer says more than the broken pipe.
  else pipeline(body, request).catch((error) => setTimeout(() => reject(error), 100).unref());
  try {
    return await readAnswer(await promise);
  } finally {
    request.destroy();
    if (typeof body !== 'string') body.destroy();
  }
}

function openRequest(to: Call['to'], options: RequestOptions): ClientRequest {
  if (typeof to === 'string') return to.startsWith('https:') ? requestSecure(to, options) : requestPlain(to, options);
  const { address, path } = to;
  const place = 'path' in address ? { socketPath: address.path, host: 'gateway' } : address;
  return requestPlain({ ...options, ...place, path });
}

async function readAnswer(response: IncomingMessage): Promise<Answer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of response) {
    bytes += piece.length;
    if (bytes > longestAnswer) throw new Error('The answer is too long');
    pieces.push(piece);
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: Buffer.concat(pieces).toString(),
  };
}
