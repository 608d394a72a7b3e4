import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createSecureContext } from 'node:tls';
import { messageOf, refuse } from './errors.ts';
import type { Log } from './log.ts';

/** Files of a server's certificate chain and its key, in PEM; both are read again while the server runs. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly rereadMs?: number;
  /** Called with the first certificate and each new one that is used. */
  readonly onUse?: (cert: string) => void;
}

export interface CertificateOptions {
  readonly files: CertificateFiles;
  readonly log: Log;
}

/** Time between two looks at the files; cert-manager renews weeks before the end, and the kubelet takes a minute to bring a Secret. */
const certificateRereadMs = 10_000;
/** A client that never finishes its handshake holds a connection for so long. */
const handshakeMs = 10_000;

/** Makes an HTTP server, which speaks TLS with a certificate; new connections get the one that the files hold at the time. */
export function makeHttpServer(
  certificate: CertificateOptions | null,
  options: ServerOptions,
  listener?: RequestListener,
): Server {
  if (certificate === null) return createServer(options, listener);
  const { files, log } = certificate;
  let current = readPair(files);
  files.onUse?.(current.cert);
  const limits = { minVersion: 'TLSv1.2', handshakeTimeout: handshakeMs } as const;
  const server = createSecureServer({ ...options, ...current, ...limits }, listener);
  // As on servers without TLS, a tunnel may be closed in one direction alone; a client that leaves within the handshake has gone.
  server.prependListener('secureConnection', (socket) => {
    socket.allowHalfOpen = true;
  });
  let warned = '';
  const reread = () => {
    try {
      const found = readPair(files);
      if (found.cert !== current.cert || found.key !== current.key) {
        server.setSecureContext({ ...found, minVersion: limits.minVersion });
        current = found;
        files.onUse?.(current.cert);
        log.info('a new certificate is used', { file: files.certFile });
      }
      warned = '';
    } catch (error) {
      // Certificate and key may be replaced one after the other: the next look finds both.
      const why = messageOf(error);
      if (why !== warned) log.warn('the new certificate cannot be used: the one before stays', { error });
      warned = why;
    }
  };
  const timer = setInterval(reread, files.rereadMs ?? certificateRereadMs).unref();
  server.once('close', () => clearInterval(timer));
  return server;
}

/** Returns when the certificates of a PEM file end, in milliseconds. */
export function endsOfCertificates(pem: string): number[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return found.map((one) => Date.parse(new X509Certificate(one).validTo));
}

/** Refuses with a sentence when the files hold no certificate with its key. */
function readPair({ certFile, keyFile }: CertificateFiles) {
  try {
    const pair = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
    createSecureContext(pair);
    return pair;
  } catch (error) {
    const why = messageOf(error);
    throw refuse('unavailable', `${certFile} and ${keyFile} hold no certificate with its key: ${why}`);
  }
}
