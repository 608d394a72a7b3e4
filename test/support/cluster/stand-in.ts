import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { until } from '../until.ts';

/** An HTTP server that a test answers for, request by request: for the faults that a real API server does not have on demand. */
export interface StandIn {
  readonly url: string;
  /** Connections open now, and ever. */
  readonly open: () => number;
  readonly ever: () => number;
  /** The next request, in their order. */
  next(): Promise<Asked>;
  stop(): Promise<void>;
}

export interface Asked {
  readonly query: URLSearchParams;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly isGone: () => boolean;
  /** Answers with JSON. */
  say(status: number, json: object, headers?: Readonly<Record<string, string>>): void;
  /** Says that an answer will come. */
  hint(): void;
  /** Goes on answering with this text or these bytes. */
  go(piece: string | Uint8Array): void;
  end(): void;
  /** Breaks the connection. */
  cut(): void;
}

/** Starts it on a port of the loopback address. */
export async function startStandIn(): Promise<StandIn> {
  const waiting: Asked[] = [];
  const sockets = new Set<Socket>();
  let ever = 0;
  const server = createServer((request, response) => void waiting.push(askedOf(request, response)));
  server.on('connection', (socket) => {
    ever++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => sockets.size,
    ever: () => ever,
    next: async () => {
      await until(() => waiting.length > 0, 10, 'something is asked');
      return waiting.shift() as Asked;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function askedOf(request: IncomingMessage, response: ServerResponse): Asked {
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
    say: (status, json, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json));
    },
    hint: () => response.writeEarlyHints({ link: '</a>; rel=preload' }),
    go: (piece) => void response.write(piece),
    end: () => void response.end(),
    cut: () => void request.socket.destroy(),
  };
}
