import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP proxy that drops or swallows connections on demand. */
export interface TcpProxy {
  readonly url: string;
  /** Destroys every open connection and returns how many; new ones are accepted. */
  dropConnections(): number;
  /** Swallows all bytes of the open connections without closing them. */
  blackhole(): void;
  stop(): Promise<void>;
}

/** Starts a TCP proxy before a server on this machine, at an address of it; TLS passes through. */
export async function startTcpProxy(to: string, address = '127.0.0.1'): Promise<TcpProxy> {
  const { hostname, port } = new URL(to);
  const sockets = new Set<Socket>();
  const fars = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      // Either side may break off.
      one.on('error', () => undefined).on('close', () => other.destroy());
      one.pipe(other);
    }
    sockets.add(near);
    fars.add(far);
    near.on('close', () => sockets.delete(near) && fars.delete(far));
  });
  server.listen(0, address);
  await once(server, 'listening');
  const dropConnections = () => {
    const open = [...sockets];
    for (const socket of open) socket.destroy();
    return open.length;
  };
  const blackhole = () => {
    for (const socket of [...sockets, ...fars]) socket.unpipe().resume();
  };
  return {
    blackhole,
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    dropConnections,
    stop: async () => {
      server.close();
      dropConnections();
      await once(server, 'close');
    },
  };
}
