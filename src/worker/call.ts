import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Address } from '../base/kinds.ts';
import { openTunnel } from '../base/tunnel.ts';

/** One HTTP request; `to` is an address of ours with a path, or the whole URL of an object store. */
export interface Call {
  readonly to: { readonly address: Address; readonly path: string } | string;
  /** A proxy that a whole URL is asked through. */
  readonly through?: Address | null;
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

interface CallOptions {
  readonly method: Call['method'];
  readonly headers: Call['headers'];
  readonly signal: AbortSignal;
  readonly timeout: number;
  readonly agent: false;
}

/** A permit names up to 128 signed URLs. */
const longestAnswer = 2 ** 20;
/** A connection on which nothing moves for so long is given up. */
const idleMilliseconds = 30_000;

/** Makes one request and reads its answer. Throws when there is none, when it is too long, or when the signal fires. */
export async function makeCall({ to, through = null, method, headers, body, signal }: Call): Promise<Answer> {
  const options: CallOptions = { method, headers, signal, timeout: idleMilliseconds, agent: false };
  if (typeof to !== 'string') return exchange(requestPlain({ ...options, ...wayTo(to.address), path: to.path }), body);
  const url = new URL(to);
  const isSecure = url.protocol === 'https:';
  if (through === null) return exchange(isSecure ? requestSecure(url, options) : requestPlain(url, options), body);
  if (isSecure) return callInTunnel(through, url, options, body);
  const named = { ...headers, host: url.host };
  return exchange(requestPlain({ ...options, ...wayTo(through), path: url.href, headers: named }), body);
}

async function callInTunnel(through: Address, url: URL, options: CallOptions, body: Call['body']): Promise<Answer> {
  const tunnel = await openTunnel(wayTo(through), url, options.signal);
  if (tunnel.is === 'refused') throw new Error(`egress answered with ${tunnel.answer.statusCode}`);
  try {
    const headers = { ...options.headers, host: url.host };
    // With an agent, even its own, the connection would not be this one.
    const way = { createConnection: () => tunnel.secured, path: url.pathname + url.search, agent: undefined };
    return await exchange(requestPlain({ ...options, ...way, headers }), body);
  } finally {
    tunnel.close();
  }
}

async function exchange(request: ClientRequest, body: Call['body']): Promise<Answer> {
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

function wayTo(address: Address): { readonly socketPath: string; host: string } | { host: string; port: number } {
  return 'path' in address ? { socketPath: address.path, host: 'gateway' } : address;
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
