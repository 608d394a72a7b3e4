import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CertificateFiles } from '../../src/base/server-certificate.ts';
import { type Authority, makeAuthority } from './certificate.ts';
import { aFolder } from './redis.ts';

export interface TlsFiles extends CertificateFiles {
  readonly caFile: string;
  readonly authority: Authority;
  /** Writes a certificate and its key, or one of them. */
  readonly write: (pair: { readonly cert?: string; readonly key?: string }) => void;
  readonly trust: (...authorities: readonly Authority[]) => void;
  readonly remove: () => void;
}

/** Makes an authority and a certificate for these hosts, in files that servers look at every 10 ms. */
export function makeTlsFiles(name: string, hosts: readonly string[]): TlsFiles {
  const { folder, remove } = aFolder();
  const [certFile, keyFile, caFile] = ['tls.crt', 'tls.key', 'ca.crt'].map((file) => join(folder, file)) as [
    string,
    string,
    string,
  ];
  const authority = makeAuthority(name);
  const write: TlsFiles['write'] = ({ cert, key }) => {
    if (cert !== undefined) writeFileSync(certFile, cert);
    if (key !== undefined) writeFileSync(keyFile, key);
  };
  const trust: TlsFiles['trust'] = (...trusted) => writeFileSync(caFile, trusted.map(({ cert }) => cert).join(''));
  write(authority.issue({ name: hosts[0] ?? name, hosts }));
  trust(authority);
  return { certFile, keyFile, caFile, rereadMs: 10, authority, write, trust, remove };
}
