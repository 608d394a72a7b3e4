import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { closeServer } from '../base/close-server.ts';
import type { Config } from '../base/config.ts';
import { listenAt, type ServerAddress } from '../base/server-address.ts';
import type { CertificateFiles } from '../base/server-certificate.ts';

/** Returns the files that the settings name, or `null` for servers without TLS. */
export function certificateFilesOf({ tlsCertFile, tlsKeyFile }: Config): CertificateFiles | null {
  return tlsCertFile && tlsKeyFile ? { certFile: tlsCertFile, keyFile: tlsKeyFile } : null;
}

/** Listens; a UNIX socket replaces one that an earlier process left, and only this user may connect to it. Returns how to end it. */
export async function openListener(server: Server, address: ServerAddress): Promise<() => Promise<void>> {
  if ('path' in address) await rm(address.path, { force: true });
  await listenAt(server, address);
  if ('path' in address) await chmod(address.path, 0o600);
  return () => closeServer(server);
}
