import { randomInt } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenAt, type ServerAddress, trustOf, usesTls } from '../base/server-address.ts';

interface EgressForwarder {
  /** The ports, none for a socket. */
  readonly ports: readonly number[];
  /** Ends every connection; may be repeated. */
  readonly close: () => Promise<void>;
}

interface ForwarderOptions {
  readonly to: ServerAddress;
  /** Path of a UNIX socket; `null` for free ports of the loopback address where no other service listens. */
  readonly path: string | null;
  /** Number of ports, of which each has its own limit. */
  readonly ports: number;
  /** Connections to egress by each port: a hostile child must not use up those that all workers share. */
  readonly most: number;
}

/**
 * Landlock opens a port at every address. No service is assigned one of these, and neither Linux nor Kubernetes gives one of them to
 * what asks for any.
 */
const portRange = { first: 61_000, last: 65_535 };

/** Listens and forwards every connection to egress. */
export async function startEgressForwarder({
  to,
  path,
  ports: count,
  most,
}: ForwarderOptions): Promise<EgressForwarder> {
  const open = new Set<Socket>();
  const servers = Array.from({ length: path === null ? count : 1 }, () =>
    makeServer(to, path === null ? most : most * count, open),
  );
  const ports = await Promise.all(
    servers.map((server) => (path === null ? listenAtFreePort(server) : listenAt(server, { path }))),
  );
  const close = async () => {
    const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
    for (const socket of open) socket.destroy();
    await Promise.all(closed);
  };
  return { ports: path === null ? ports : [], close };
}

function makeServer(to: ServerAddress, most: number, open: Set<Socket>): Server {
  let taken = 0;
  return createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = taken < most ? connectTo(to) : null;
    if (far === null) return void near.destroy();
    taken++;
    for (const socket of [near, far]) {
      open.add(socket);
      // A broken side closes.
      socket.on('error', () => {}).once('close', () => open.delete(socket));
    }
    near.once('close', () => {
      // The connection counts until egress has closed it, too: a client that comes and goes would open any number of them.
      far
        .unpipe()
        .on('data', () => far.destroy())
        .end();
    });
    far.once('close', () => {
      taken--;
      near.destroySoon();
    });
    near.pipe(far);
    far.pipe(near);
  });
}

async function listenAtFreePort(server: Server): Promise<number> {
  for (;;) {
    const port = randomInt(portRange.first, portRange.last + 1);
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
