import { once } from 'node:events';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ConnectionOptions } from 'node:tls';
import { proxyVerdictHeader } from './egress-verdict.ts';
import { codeOf, refuseWithout } from './errors.ts';
import { readBody } from './read-body.ts';
import { type ServerAddress, trustOf, usesTls } from './server-address.ts';

/**
 * Loaded at their first use: an import of node:http loads all of undici, for names that nobody uses here, and few workers speak
 * TLS. Together that is 30 ms of processor time for each job.
 */
const http = () => process.getBuiltinModule('node:http');
const https = () => process.getBuiltinModule('node:https');
const tls = () => process.getBuiltinModule('node:tls');

export interface HttpRequest {
  readonly to: { readonly server: ServerAddress; readonly path: string } | URL;
  /** Proxy that a whole URL is asked through: with CONNECT for https, in absolute form for http. */
  readonly proxy?: ServerAddress | null;
  /** Certificates, in PEM, of authorities that the server of a whole URL may have besides the public ones. */
  readonly authorities?: readonly string[];
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers?: Readonly<Record<string, string>>;
  /** A text, or a stream whose length `content-length` of the headers tells. */
  readonly body?: string | Readable;
  readonly signal: AbortSignal;
  /** Gives up a connection on which nothing moves for so long; without it only the signal ends the wait. */
  readonly idleMs?: number;
  /** Gives up a port that takes no connection for so long after the look-up of its name; without it only the signal ends the wait. */
  readonly connectMs?: number;
  readonly maxAnswerBytes: number;
  /** The status alone counts: a body that is too long or breaks off is no error, and `text` is empty. */
  readonly ignoresBody?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

export class ProxyRefusal extends Error {
  readonly status: number;
  /** Verdict of the egress proxy; `null` from any other proxy. */
  readonly verdict: string | null;

  constructor({ statusCode = 0, headers }: IncomingMessage) {
    super(`the proxy answered ${statusCode}`);
    this.status = statusCode;
    this.verdict = String(headers[proxyVerdictHeader] ?? '') || null;
  }
}

/** The proxy took no connection: nothing was sent, and nobody behind it has heard of the request. */
export class ProxyAway extends Error {}

/** Errors of a peer that is down, restarting or unreachable: another try may succeed. */
const awayCodes = ['ENOENT', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'];
/** A server of ours whose certificate is not trusted, or not yet after a rotation, is as good as away. */
const untrusted = /^(CERT_|ERR_TLS_CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/;
const maxJsonBytes = 1024 * 1024;
/** Packets to a machine that is gone, or behind a policy, are swallowed: the kernel would try for two minutes. */
const ownServerConnectMs = 5_000;
/** A server that answers before it has read the whole body breaks the connection: its answer has this time to arrive. */
const lateAnswerMs = 100;

/** Sends one request over a connection of its own and reads the answer; follows no redirect. Throws when there is no answer. */
export async function sendRequest(sent: HttpRequest): Promise<HttpAnswer> {
  const { to, proxy = null, authorities = [], method, headers, signal, idleMs } = sent;
  const options = {
    method,
    headers: { ...headers },
    signal,
    agent: false as const,
    ...(idleMs && { timeout: idleMs }),
  };
  if (!(to instanceof URL)) return exchange(ask(to.server, { ...options, path: to.path }), sent);
  const isSecure = to.protocol === 'https:';
  const trust = authorities.length > 0 ? { ca: [...tls().getCACertificates(), ...authorities] } : {};
  if (proxy === null)
    return exchange(isSecure ? https().request(to, { ...options, ...trust }) : http().request(to, options), sent);
  const named: RequestOptions = { ...options, headers: { ...headers, host: to.host } };
  if (!isSecure) {
    const asked = ask(proxy, { ...named, path: to.href });
    return connected(asked, proxy, exchange(asked, sent, true));
  }
  const tunnel = await openTunnel(proxy, to, trust, signal);
  try {
    // With an agent, even one of its own, the connection would not be this one.
    const way = { createConnection: () => tunnel.secured, path: to.pathname + to.search, agent: undefined };
    return await exchange(http().request({ ...named, ...way } as RequestOptions), sent);
  } finally {
    tunnel.socket.destroy();
  }
}

/** Posts JSON to the inspector and returns its answer, of at most 1 MiB; refuses with `unavailable` when it cannot be reached. */
export async function postJson(
  server: ServerAddress,
  path: string,
  value: unknown,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const body = JSON.stringify(value);
  const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
  const sent = { to: { server, path }, method: 'POST', headers, body, signal } as const;
  const limits = { connectMs: ownServerConnectMs, maxAnswerBytes: maxJsonBytes };
  return sendRequest({ ...sent, ...limits }).catch((error: unknown) => {
    const code = codeOf(error);
    throw awayCodes.includes(code) || untrusted.test(code) ? refuseWithout('inspector', error) : error;
  });
}

/** Returns true for the error of a server that ended in the middle of an exchange. */
export function hasBrokenOff(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(codeOf(error));
}

async function exchange(asked: ClientRequest, sent: HttpRequest, isThroughProxy = false): Promise<HttpAnswer> {
  const { body = '', connectMs, maxAnswerBytes, ignoresBody = false } = sent;
  if (connectMs !== undefined) limitConnect(asked, connectMs);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const rejectLate = (error: Error) => setTimeout(reject, lateAnswerMs, error).unref();
  asked.on('timeout', () => asked.destroy(new Error('nothing was heard for too long')));
  asked.on('response', resolve).on('error', reject);
  // A protocol upgrade that was not asked for ends in a bare close.
  asked.once('close', () => rejectLate(new Error('no answer')));
  if (typeof body === 'string') asked.end(body);
  else pipeline(body, asked).catch(rejectLate);
  try {
    const response = await promise;
    const reading = readBody(response, maxAnswerBytes);
    const bytes = await (ignoresBody ? reading.catch(() => null) : reading);
    if (isThroughProxy && response.headers[proxyVerdictHeader] !== undefined) throw new ProxyRefusal(response);
    if (bytes === null && !ignoresBody) throw new Error('the answer is too large');
    const text = ignoresBody ? '' : String(bytes);
    return { status: response.statusCode ?? 0, text };
  } finally {
    asked.destroy();
    if (typeof body !== 'string') body.destroy();
  }
}

/** Ends a request whose server has taken no connection in time, with the error that the kernel would give later. */
function limitConnect(asked: ClientRequest, connectMs: number): void {
  const late = () => asked.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    timer ??= setTimeout(late, connectMs);
  };
  const end = () => clearTimeout(timer);
  asked.once('socket', (socket) => {
    socket.once('connect', end);
    // The look-up of a name has limits of its own: one lost packet takes 5 s there.
    if (isIP(asked.host)) begin();
    else socket.once('lookup', begin);
  });
  asked.once('close', end);
}

/** Returns a connection through the proxy to the server of an https URL, whose certificate has been checked. */
async function openTunnel(proxy: ServerAddress, url: URL, trust: ConnectionOptions, signal: AbortSignal) {
  const authority = `${url.hostname}:${url.port || 443}`;
  const headers = { host: authority };
  const asked = ask(proxy, { method: 'CONNECT', path: authority, headers, agent: false, signal });
  asked.end();
  const opened = connected(asked, proxy, once(asked, 'connect'));
  const [answer, socket, head] = (await opened) as [IncomingMessage, Socket, Buffer];
  // From here on errors show at the connection inside the tunnel.
  for (const part of [asked, socket]) part.on('error', () => {});
  try {
    if (answer.statusCode !== 200) throw new ProxyRefusal(answer);
    socket.unshift(head);
    const host = url.hostname.replace(/^\[|\]$|\.$/g, '');
    const named = isIP(host) ? { host } : { host, servername: host };
    const secured = tls().connect({
      ...trust,
      ...named,
      socket,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
    });
    // The handshake below throws its errors; later ones have no listener.
    secured.on('error', () => {});
    await once(secured, 'secureConnect', { signal });
    return { secured, socket };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Has work with a request to a proxy fail with `ProxyAway` when its connection was never there. */
async function connected<T>(asked: ClientRequest, proxy: ServerAddress, work: Promise<T>): Promise<T> {
  let isOpen = false;
  const open = () => {
    isOpen = true;
  };
  asked.once('socket', (socket) => socket.once(usesTls(proxy) ? 'secureConnect' : 'connect', open));
  return work.catch((error: NodeJS.ErrnoException) => {
    throw isOpen ? error : Object.assign(new ProxyAway(error.message, { cause: error }), { code: error.code });
  });
}

function ask(server: ServerAddress, options: RequestOptions): ClientRequest {
  if ('path' in server) return http().request({ ...options, socketPath: server.path, host: 'localhost' });
  const { host, port } = server;
  return usesTls(server)
    ? https().request({ ...options, host, port, ...trustOf(server) })
    : http().request({ ...options, host, port });
}
