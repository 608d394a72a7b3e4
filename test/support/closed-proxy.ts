import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A forward proxy that opens no way to any host. */
export interface ClosedProxy {
  /** Settings of a program on Node or Python that is to go through it. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that were asked for. */
  readonly asked: string[];
  stop(): Promise<void>;
}

/** Starts a proxy that answers each CONNECT with the next status, from then on with the last one. */
export async function startClosedProxy(...statuses: readonly string[]): Promise<ClosedProxy> {
  const asked: string[] = [];
  const server = createServer();
  server.on('connect', ({ url = '' }, socket) => {
    const status = statuses[asked.length] ?? statuses.at(-1);
    asked.push(url);
    socket.on('error', () => undefined);
    socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    env: { HTTPS_PROXY: url, NODE_USE_ENV_PROXY: '1' },
    asked,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
