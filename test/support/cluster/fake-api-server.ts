import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { until } from '../until.ts';

/** An HTTP server that a test answers request by request, for faults that a real API server does not have on demand. */
export interface FakeApiServer {
  readonly url: string;
  /** Connections open now, and ever. */
  readonly openConnections: () => number;
  readonly allConnections: () => number;
  /** The next request, in order of arrival. */
  next(): Promise<FakeRequest>;
  stop(): Promise<void>;
}

export interface FakeRequest {
  readonly query: URLSearchParams;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly isGone: () => boolean;
  /** Answers with JSON. */
  answer(status: number, json: object, headers?: Readonly<Record<string, string>>): void;
  /** Says that an answer will come. */
  sendEarlyHints(): void;
  /** Goes on answering with this text or these bytes. */
  write(piece: string | Uint8Array): void;
  end(): void;
  /** Breaks the connection. */
  destroy(): void;
}

/**
 * Starts a fake API server on a port of the loopback address. It tells its version by itself unless the test does: the client asks for
 * that when an answer is late, as after a halt of this process.
 */
export async function startFakeApiServer(tellsVersion = true): Promise<FakeApiServer> {
  const waiting: FakeRequest[] = [];
  const sockets = new Set<Socket>();
  let ever = 0;
  const server = createServer((request, response) => {
    if (tellsVersion && request.url === '/version') response.end('{}');
    else waiting.push(makeFakeRequest(request, response));
  });
  server.on('connection', (socket) => {
    ever++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    openConnections: () => sockets.size,
    allConnections: () => ever,
    next: async () => {
      await until(() => waiting.length > 0, 10, 'something is asked');
      return waiting.shift() as FakeRequest;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function makeFakeRequest(request: IncomingMessage, response: ServerResponse): FakeRequest {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://stand-in');
  let isGone = false;
  response.on('close', () => {
    isGone = true;
  });
  return {
    query: searchParams,
    path: pathname,
    headers: request.headers,
    isGone: () => isGone,
    answer: (status, json, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json));
    },
    sendEarlyHints: () => response.writeEarlyHints({ link: '</a>; rel=preload' }),
    write: (piece) => void response.write(piece),
    end: () => void response.end(),
    destroy: () => void request.socket.destroy(),
  };
}
