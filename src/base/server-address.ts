import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { isIP, type Server } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

/** Address of a server of ours: a UNIX socket, or a host with a port. `net.connect` and `server.listen` take it as it is. */
export type ServerAddress = SocketAddress | HostAddress;

export type SocketAddress = { readonly path: string };

interface HostAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: ServerTrust;
}

interface ServerTrust {
  /** File with certificates of the authorities that are trusted, in PEM; the public ones without it. */
  readonly caFile: string | null;
}

/** Listens there and returns the port, 0 for a socket; throws when the address is taken. */
export async function listenAt(server: Server, address: ServerAddress): Promise<number> {
  server.listen(address);
  await once(server, 'listening');
  const listening = server.address();
  return typeof listening === 'object' ? (listening?.port ?? 0) : 0;
}

export function usesTls(address: ServerAddress): address is HostAddress & { readonly tls: ServerTrust } {
  return 'host' in address && address.tls !== undefined;
}

/**
 * Options of a TLS connection that checks the certificate of the server; the file of authorities is read for each, so that a
 * new one counts. An address has no server name: the client would take that of the request that it tunnels.
 */
export function trustOf({ host, tls }: HostAddress & { readonly tls: ServerTrust }): ConnectionOptions {
  const authorities = tls.caFile === null ? {} : { ca: readFileSync(tls.caFile) };
  return { ...authorities, servername: isIP(host) === 0 ? host : '', rejectUnauthorized: true };
}

/** Returns the address as settings write it. */
export function showAddress(address: ServerAddress): string {
  if ('path' in address) return `unix:${address.path}`;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `${usesTls(address) ? 'https' : 'http'}://${host}:${address.port}`;
}
