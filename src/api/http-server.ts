import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { closeServer } from '../base/close-server.ts';
import { listenAt } from '../base/server-address.ts';
import { limitPending, type PendingLimit } from './pending-connections.ts';
import { hasBody, originTarget } from './request-syntax.ts';

/** A listening HTTP server. */
export interface HttpServer {
  readonly port: number;
  /** Accepts nothing more, lets open requests end, and closes what is left after some seconds. */
  drain(seconds: number): Promise<void>;
}

/** Limits on how long a caller may take. */
export interface HttpTimeouts {
  /** For the headers of a request. */
  readonly headersMs: number;
  /** For a request with its body. */
  readonly requestMs: number;
  /** For the body alone. */
  readonly bodyMs: number;
  /** Between an answer and the next request. */
  readonly keepAliveMs: number;
  /** Interval at which the first two are checked; the body has a timer of its own. */
  readonly checkMs: number;
}

/** Of each open connection the answer to its last request; `null` before its first one. */
type LastAnswers = Map<Socket, ServerResponse | null>;

const defaultTimeouts: HttpTimeouts = {
  headersMs: 10_000,
  requestMs: 20_000,
  bodyMs: 5_000,
  keepAliveMs: 65_000,
  checkMs: 2_000,
};

const timeoutCode = 'ERR_HTTP_REQUEST_TIMEOUT';
type FaultReply = readonly [status: string, sentence: string];

/** Answers to bytes that never become a request, by Node's error code. */
const faults: Readonly<Record<string, FaultReply>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'Bad Request: the URL or the headers are too long'],
  [timeoutCode]: ['408 Request Timeout', 'Bad Request: the request took too long to arrive'],
};

/** Serves the app; connections that send slowly, or too much, are closed. */
export async function listen(
  app: Express,
  host: string,
  port: number,
  pending: PendingLimit,
  timeouts = defaultTimeouts,
): Promise<HttpServer> {
  const answers: LastAnswers = new Map();
  const serve: RequestListener = (req, res) => {
    answers.set(req.socket, res);
    noteRequest(req, res);
    if (hasBody(req)) limitBody(server, req, timeouts.bodyMs);
    if (!req.url?.startsWith('/')) req.url = originTarget(req.url ?? '');
    app(req, res);
  };
  const server = createServer(
    {
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: timeouts.checkMs,
      maxHeaderSize: 32 * 1024,
      // The app itself refuses a request without Host, in words.
      requireHostHeader: false,
    },
    serve,
  );
  // An unknown Expect header is ignored (Node would answer 417).
  server.on('checkExpectation', serve);
  const refuseNow = (socket: Duplex, ...reason: FaultReply) => {
    if (socket.writable && !isAnswering(answers.get(socket as Socket))) refuse(socket, ...reason);
    else socket.destroy();
  };
  server.on('connect', (_req, socket) => refuseNow(socket, '400 Bad Request', 'Bad Request: this server is no proxy'));
  trackConnections(server, answers);
  const noteRequest = limitPending(server, pending);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET') return socket.destroy();
    const unknown: FaultReply = ['400 Bad Request', 'Bad Request: this is not an HTTP request'];
    return refuseNow(socket, ...(faults[error.code ?? ''] ?? unknown));
  });
  const bound = await listenAt(server, { host, port });
  return { port: bound, drain: (seconds) => drain(server, answers, seconds) };
}

/** Returns true while an earlier answer is unfinished: the caller would take a 400 of this fault for it. */
function isAnswering(last: ServerResponse | null | undefined): boolean {
  return last ? !last.writableFinished && (last.req.complete || last.headersSent) : false;
}

function refuse(socket: Duplex, status: string, sentence: string): void {
  const body = JSON.stringify({ error: sentence });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nx-error-code: bad_request\r\n`;
  socket.end(
    `${head}cache-control: no-store\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

/** Ends a request whose body is late as Node ends one that is late as a whole. */
function limitBody(server: Server, req: IncomingMessage, bodyMs: number): void {
  const late = setTimeout(() => {
    if (req.complete) return;
    server.emit('clientError', Object.assign(new Error('the body is late'), { code: timeoutCode }), req.socket);
  }, bodyMs).unref();
  req.once('close', () => clearTimeout(late));
}

function trackConnections(server: Server, answers: LastAnswers): void {
  server.on('connection', (socket) => {
    answers.set(socket, null);
    // Node listens no more after a CONNECT, and an error that nobody hears would end the process. The close that follows is heard.
    socket.on('error', () => undefined);
    socket.once('close', () => answers.delete(socket));
  });
}

async function drain(server: Server, answers: LastAnswers, seconds: number): Promise<void> {
  const closed = closeServer(server, seconds * 1000);
  // Node does not count a connection without a request as idle.
  for (const [socket, answer] of answers) if (answer === null) socket.destroy();
  await closed;
}
