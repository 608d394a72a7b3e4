import { randomInt } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenAt, type ServerAddress, trustOf, usesTls } from '../base/server-address.ts';

interface EgressForwarder {
  /** The port, 0 for a socket. */
  readonly port: number;
  /** Ends every connection; may be repeated. */
  readonly close: () => Promise<void>;
}

/** One worker needs a few dozen; a hostile child must not use up the proxy's connections, which all workers share. */
const maxConnections = 128;
/**
 * Landlock opens a port at every address. No service is assigned one of these, and neither Linux nor Kubernetes gives one of them to
 * what asks for any.
 */
const ports = { first: 61_000, last: 65_535 };

/** Listens on a UNIX socket, or on a free port of the loopback address where no other service listens, and forwards every connection to `to`. */
export async function startEgressForwarder(to: ServerAddress, path: string | null): Promise<EgressForwarder> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connectTo(to);
    if (far === null) return void near.destroy();
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      // A broken side closes, and its close ends the other side.
      one.on('error', () => {});
      one.on('close', () => {
        open.delete(one);
        other.destroySoon();
      });
    }
    near.pipe(far);
    far.pipe(near);
  });
  server.maxConnections = maxConnections;
  const port = path === null ? await listenAtFreePort(server) : await listenAt(server, { path });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of open) socket.destroy();
    });
  return { port, close };
}

async function listenAtFreePort(server: Server): Promise<number> {
  for (;;) {
    const port = randomInt(ports.first, ports.last + 1);
    try {
      return await listenAt(server, { host: '127.0.0.1', port });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

/** Returns `null` while the file of authorities cannot be read. */
function connectTo(to: ServerAddress): Socket | null {
  const options = { ...to, allowHalfOpen: true, noDelay: true };
  if (!usesTls(to)) return connect(options);
  try {
    // Loaded only where it is spoken, because loading it costs each job processor time.
    return process.getBuiltinModule('node:tls').connect({ ...options, ...trustOf(to) });
  } catch {
    return null;
  }
}
