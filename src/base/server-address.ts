import { once } from 'node:events';
import type { Server } from 'node:net';

/** Address of a server of ours: a UNIX socket, or a host with a port. `net.connect` and `server.listen` take it as it is. */
export type ServerAddress = { readonly path: string } | { readonly host: string; readonly port: number };

/** Listens there and returns the port, 0 for a socket; throws when the address is taken. */
export async function listenAt(server: Server, address: ServerAddress): Promise<number> {
  server.listen(address);
  await once(server, 'listening');
  const listening = server.address();
  return typeof listening === 'object' ? (listening?.port ?? 0) : 0;
}
