import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a server that a test can cut. */
export interface Line {
  readonly url: string;
  /** Breaks every connection that goes over it; answers how many. New ones are let through. */
  cut(): number;
  /** Loses all that is sent over the connections of now, and tells neither side. */
  lose(): void;
  stop(): Promise<void>;
}

/** Lays a line to a server on this machine; what goes over it is not looked into. */
export async function layLine(to: string): Promise<Line> {
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    const open = [...sockets];
    for (const socket of open) socket.destroy();
    return open.length;
  };
  const lose = () => {
    for (const socket of [...sockets, ...fars]) socket.unpipe().resume();
  };
  return {
    lose,
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    stop: async () => {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
