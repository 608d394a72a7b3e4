import { chmod, readFile, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { closeServer } from '../base/close-server.ts';
import type { Config } from '../base/config.ts';
import type { Metrics } from '../base/metrics.ts';
import { listenAt, type ServerAddress } from '../base/server-address.ts';
import { type CertificateFiles, endsOfCertificates } from '../base/server-certificate.ts';

/** Returns the files that the settings name, or `null` for servers without TLS; a metric shows when the certificate in use ends. */
export function certificateFilesOf({ tlsCertFile, tlsKeyFile }: Config, metrics: Metrics): CertificateFiles | null {
  if (!tlsCertFile || !tlsKeyFile) return null;
  const onUse = (cert: string) => {
    metrics.certificate_ends_seconds.set({ use: 'served' }, Math.min(...endsOfCertificates(cert)) / 1000);
  };
  return { certFile: tlsCertFile, keyFile: tlsKeyFile, onUse };
}

/** Lets a metric show when the last of the trusted authorities ends, as long as their file can be read. */
export function showAuthoritiesEnd({ tlsCaFile }: Pick<Config, 'tlsCaFile'>, metrics: Metrics): void {
  if (!tlsCaFile) return;
  metrics.refreshers.add(async () => {
    const ends = await readFile(tlsCaFile, 'utf8')
      .then(endsOfCertificates)
      .catch(() => []);
    if (ends.length > 0) metrics.certificate_ends_seconds.set({ use: 'trusted' }, Math.max(...ends) / 1000);
  });
}

/** Listens; a UNIX socket replaces one that an earlier process left, and only this user may connect to it. Returns how to end it. */
export async function openListener(server: Server, address: ServerAddress): Promise<() => Promise<void>> {
  if ('path' in address) await rm(address.path, { force: true });
  await listenAt(server, address);
  if ('path' in address) await chmod(address.path, 0o600);
  return () => closeServer(server);
}
