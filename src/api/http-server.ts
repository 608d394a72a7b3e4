import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { closeServer } from '../base/close-server.ts';
import { originTarget } from './request-syntax.ts';

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
  /** Between an answer and the next request. */
  readonly keepAliveMs: number;
  /** Interval at which the first two are checked. */
  readonly checkMs: number;
}

/** Of each open connection the answer to its last request; `null` before its first one. */
type LastAnswers = Map<Socket, ServerResponse | null>;

const defaultTimeouts: HttpTimeouts = { headersMs: 10_000, requestMs: 20_000, keepAliveMs: 65_000, checkMs: 2_000 };

/** Answers to bytes that never become a request, by Node's error code. */
const faults: Readonly<Record<string, readonly [status: string, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'Bad Request: the URL or the headers are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'Bad Request: the request took too long to arrive'],
};

/** Serves the app; connections that send slowly, or too much, are closed. */
export async function listen(
  app: Express,
  host: string,
  port: number,
  timeouts = defaultTimeouts,
): Promise<HttpServer> {
  const answers: LastAnswers = new Map();
  const serve: RequestListener = (req, res) => {
    answers.set(req.socket, res);
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
  server.on('connect', (_req, socket) => refuse(socket, '400 Bad Request', 'Bad Request: this server is no proxy'));
  trackConnections(server, answers);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(answers.get(socket as Socket))) {
      return socket.destroy();
    }
    const unknown = ['400 Bad Request', 'Bad Request: this is not an HTTP request'] as const;
    return refuse(socket, ...(faults[error.code ?? ''] ?? unknown));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return { port: (server.address() as AddressInfo).port, drain: (seconds) => drain(server, answers, seconds) };
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

function trackConnections(server: Server, answers: LastAnswers): void {
  server.on('connection', (socket) => {
    answers.set(socket, null);
    socket.once('close', () => answers.delete(socket));
  });
}

async function drain(server: Server, answers: LastAnswers, seconds: number): Promise<void> {
  const closed = closeServer(server, seconds * 1000);
  // Node does not count a connection without a request as idle.
  for (const [socket, answer] of answers) if (answer === null) socket.destroy();
  await closed;
}
