import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createConnection } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { closeServer } from '../base/close-server.ts';
import type { Config } from '../base/config.ts';
import { listenAt, type ServerAddress, trustOf, usesTls } from '../base/server-address.ts';
import type { CertificateFiles } from '../base/server-certificate.ts';

const answerMs = 2_000;

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

export async function isListening(address: ServerAddress): Promise<boolean> {
  return (await findListenError(address)) === null;
}

/** Connects, with TLS where the address says so, and returns why that does not work; `null` when it does. */
export function findListenError(address: ServerAddress): Promise<Error | null> {
  return new Promise((resolve) => {
    const options = { ...address, timeout: answerMs };
    const wire = usesTls(address) ? connectTls({ ...options, ...trustOf(address) }) : createConnection(options);
    const settle = (error: Error | null) => {
      wire.destroy();
      resolve(error);
    };
    wire.once(usesTls(address) ? 'secureConnect' : 'connect', () => settle(null));
    wire.once('timeout', () => settle(new Error(`nothing is heard for ${answerMs / 1000} s`)));
    wire.on('error', settle);
  }).catch((error: Error) => error) as Promise<Error | null>;
}
