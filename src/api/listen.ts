import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Express } from 'express';

/** A server that answers on a port. */
export interface Listening {
  readonly port: number;
  /** Accepts nothing more, lets what is under way end, and cuts what is left after some seconds. */
  drain(seconds: number): Promise<void>;
}

const tidyMilliseconds = 50;

/** Sentences for what never becomes a request. */
const faults: Readonly<Record<string, readonly [status: string, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'Bad Request: the URL or the headers are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'Bad Request: the request took too long to arrive'],
};

/** Serves the app; callers that send slowly, or too much, are cut off. */
export async function listen(app: Express, host: string, port: number): Promise<Listening> {
  const server = createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: 2_000,
      maxHeaderSize: 32 * 1024,
    },
    app,
  );
  const silent = noteSilent(server);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return socket.destroy();
    const [status, sentence] = faults[error.code ?? ''] ?? [
      '400 Bad Request',
      'Bad Request: this is not an HTTP request',
    ];
    const body = JSON.stringify({ error: sentence });
    const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nx-error-code: bad_request\r\n`;
    socket.end(
      `${head}cache-control: no-store\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return { port: (server.address() as AddressInfo).port, drain: (seconds) => drain(server, silent, seconds) };
}

/** Connections over which nothing was asked yet: the server itself does not count them as idle. */
function noteSilent(server: Server): ReadonlySet<Socket> {
  const silent = new Set<Socket>();
  server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', ({ socket }) => silent.delete(socket));
  return silent;
}

async function drain(server: Server, silent: ReadonlySet<Socket>, seconds: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const socket of silent) socket.destroy();
  // A connection whose answer began before is kept alive after it.
  const tidy = setInterval(() => server.closeIdleConnections(), tidyMilliseconds);
  const cut = setTimeout(() => server.closeAllConnections(), seconds * 1000);
  await closed;
  clearTimeout(cut);
  clearInterval(tidy);
}
