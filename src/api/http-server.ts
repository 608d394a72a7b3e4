import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Express } from 'express';
import { messagesOf } from './messages.ts';
import { plainTarget } from './request-syntax.ts';

/** A server that answers on a port. */
export interface Listening {
  readonly port: number;
  /** Accepts nothing more, lets what is under way end, and cuts what is left after some seconds. */
  drain(seconds: number): Promise<void>;
}

/** How long callers may take, in milliseconds. */
export interface Patience {
  /** For the headers of a request. */
  readonly headers: number;
  /** For a request with its body. */
  readonly request: number;
  /** For the next request. */
  readonly idle: number;
  /** How often it is looked. */
  readonly look: number;
}

const usual: Patience = { headers: 10_000, request: 20_000, idle: 65_000, look: 2_000 };
const tidyMilliseconds = 50;

/** Sentences for what never becomes a request. */
const faults: Readonly<Record<string, readonly [status: string, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'Bad Request: the URL or the headers are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'Bad Request: the request took too long to arrive'],
};

/** Serves the app; callers that send slowly, or too much, are cut off. */
export async function listen(app: Express, host: string, port: number, patience: Patience = usual): Promise<Listening> {
  const answers = new Map<Socket, ServerResponse | null>();
  const serve: RequestListener = (req, res) => {
    answers.set(req.socket, res);
    if (!req.url?.startsWith('/')) req.url = plainTarget(req.url ?? '');
    app(req, res);
  };
  const server = createServer(
    {
      ...messagesOf(app),
      headersTimeout: patience.headers,
      requestTimeout: patience.request,
      keepAliveTimeout: patience.idle,
      connectionsCheckingInterval: patience.look,
      maxHeaderSize: 32 * 1024,
      // The app says itself, and in words, that a Host is missing.
      requireHostHeader: false,
    },
    serve,
  );
  // Nobody has to meet an expectation that he does not know.
  server.on('checkExpectation', serve);
  server.on('connect', (_req, socket) => refuse(socket, '400 Bad Request', 'Bad Request: this server is no proxy'));
  noteConnections(server, answers);
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

/** Whether an answer is still to come, or to be finished, that this fault has nothing to do with: it would be taken for it. */
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

/** Keeps every open connection with the last answer over it, `null` as long as nothing was asked. */
function noteConnections(server: Server, answers: Map<Socket, ServerResponse | null>): void {
  server.on('connection', (socket) => {
    answers.set(socket, null);
    socket.once('close', () => answers.delete(socket));
  });
}

async function drain(
  server: Server,
  answers: ReadonlyMap<Socket, ServerResponse | null>,
  seconds: number,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // The server itself does not count a connection as idle over which nothing was asked yet.
  for (const [socket, answer] of answers) if (answer === null) socket.destroy();
  // A connection whose answer began before is kept alive after it.
  const tidy = setInterval(() => server.closeIdleConnections(), tidyMilliseconds);
  const cut = setTimeout(() => server.closeAllConnections(), seconds * 1000);
  await closed;
  clearTimeout(cut);
  clearInterval(tidy);
}
