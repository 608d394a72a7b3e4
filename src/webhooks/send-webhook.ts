import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { Address } from '../base/post.ts';
import { openTunnel } from '../base/tunnel.ts';

/** What is sent, and to whom. */
export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What became of a post: the status of its answer, or why there is none. Only what is refused is so for good. */
export type Posted =
  | { readonly is: 'answered'; readonly status: number }
  | { readonly is: 'refused' | 'failed'; readonly why: string };

const answerBytesMax = 64 * 1024;
/** Stands in answers of the proxy itself, and never in one of a receiver. */
const verdictHeader = 'x-egress-verdict';

/** Posts JSON to an address that a caller named, through the proxy alone and over a connection of its own. No redirect is followed. */
export async function postThrough(
  proxy: Address,
  post: Post,
  limitMilliseconds: number,
  stop: AbortSignal,
): Promise<Posted> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMilliseconds)]);
  try {
    const url = new URL(post.url);
    return url.protocol === 'https:'
      ? await postInTunnel(proxy, url, post, signal)
      : await postPlain(proxy, url, post, signal);
  } catch (error) {
    const late = signal.aborted && !stop.aborted;
    return { is: 'failed', why: late ? 'no answer in time' : error instanceof Error ? error.message : String(error) };
  }
}

async function postPlain(proxy: Address, url: URL, post: Post, signal: AbortSignal): Promise<Posted> {
  const answer = await ask({ ...proxy, path: url.href, agent: false, signal }, url, post);
  const verdict = verdictOf(answer);
  await drop(answer);
  return verdict ?? { is: 'answered', status: answer.statusCode ?? 0 };
}

async function postInTunnel(proxy: Address, url: URL, post: Post, signal: AbortSignal): Promise<Posted> {
  const tunnel = await openTunnel(proxy, url, signal);
  if (tunnel.is === 'refused') {
    return verdictOf(tunnel.answer) ?? { is: 'failed', why: `the proxy answered ${tunnel.answer.statusCode}` };
  }
  try {
    const path = url.pathname + url.search;
    const answer = await ask({ createConnection: () => tunnel.secured, path, signal }, url, post);
    await drop(answer);
    return { is: 'answered', status: answer.statusCode ?? 0 };
  } finally {
    tunnel.close();
  }
}

/** Sends it and waits for the head of the answer. */
function ask(way: RequestOptions, url: URL, { headers, body }: Post): Promise<IncomingMessage> {
  const framing = { host: url.host, 'content-length': Buffer.byteLength(body), connection: 'close' };
  return new Promise((resolve, reject) => {
    const asked = request({ ...way, method: 'POST', headers: { ...headers, ...framing } });
    asked.once('response', resolve);
    asked.on('error', reject);
    // A change of protocol that nobody asked for is followed by this alone.
    asked.once('close', () => reject(new Error('no answer')));
    asked.end(body);
  });
}

/** Takes in a bounded part of a body that nobody reads: the status counts, whatever comes behind it. */
async function drop(answer: IncomingMessage): Promise<void> {
  let bytes = 0;
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > answerBytesMax) answer.destroy();
  });
  await new Promise((resolve) => answer.on('error', resolve).once('close', resolve));
}

/** What the proxy itself says; `null` for the answer of a receiver. */
function verdictOf({ statusCode, headers }: IncomingMessage): Posted | null {
  const verdict = headers[verdictHeader];
  if (typeof verdict !== 'string') return null;
  return { is: statusCode === 403 && verdict.startsWith('refused') ? 'refused' : 'failed', why: verdict };
}
