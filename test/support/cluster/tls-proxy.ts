import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { Certificate } from '../certificate.ts';

/** A proxy that speaks TLS on both sides, so that an API server behind it seems to have another certificate. */
export interface TlsProxy {
  readonly url: string;
  /** Serves this certificate from now on, and closes every open connection. */
  replaceCertificate(certificate: Certificate): void;
  stop(): Promise<void>;
}

/** Starts such a proxy before a server on this machine whose certificate this authority issued. */
export async function startTlsProxy(to: string, ca: string, certificate: Certificate): Promise<TlsProxy> {
  const { hostname: host, port } = new URL(to);
  const sockets = new Set<TLSSocket>();
  const server = createServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }, (near) => {
    const far = connect({ host, port: Number(port), ca, ALPNProtocols: [near.alpnProtocol || 'http/1.1'] });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      // Either side may break off.
      one.on('error', () => undefined).on('close', () => other.destroy() && sockets.delete(one));
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    replaceCertificate: (next) => {
      server.setSecureContext(next);
      closeAll();
    },
    stop: async () => {
      server.close();
      closeAll();
      await once(server, 'close');
    },
  };
}
