import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Closes connections of a client that has so many whose TLS handshake is not over: they count among its connections only afterwards. */
export function limitHandshakes(server: Server, maxPerClient: number): void {
  const begun = new Map<string, Set<number>>();
  const finish = ({ address, port }: { readonly address: string; readonly port: number }) => {
    const ports = begun.get(address);
    ports?.delete(port);
    if (ports?.size === 0) begun.delete(address);
  };
  server.on('connection', (socket: Socket) => {
    const client = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 };
    const ports = begun.get(client.address) ?? new Set();
    if (ports.size >= maxPerClient) {
      socket.destroy();
      return;
    }
    begun.set(client.address, ports.add(client.port));
    socket.once('close', () => finish(client));
  });
  server.on('secureConnection', (socket: Socket) => {
    finish({ address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 });
  });
}
