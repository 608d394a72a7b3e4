import { randomInt } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { codeOf } from '../base/errors.ts';
import { listenAt, type ServerAddress, trustOf, usesTls } from '../base/server-address.ts';

interface ForwarderOptions {
  readonly to: ServerAddress;
  /**
   * Folder for the UNIX sockets to which port-forwarder.py leads the ports inside a sandbox, each named by its port; `null` for free
   * ports of the loopback address where no other service listens.
   */
  readonly folder: string | null;
  /** Number of ports, of which each has its own limit. */
  readonly ports: number;
  /** Connections to egress by each port: a hostile child must not use up those that all workers share. */
  readonly maxConnections: number;
}

/** First port inside the sandbox's own network, where nothing else listens. */
const firstInsidePort = 3128;

/**
 * Landlock opens a port at every address. No service is assigned one of these, and neither Linux nor Kubernetes gives one of them to
 * what asks for any.
 */
const portRange = { first: 61_000, last: 65_535 };

/**
 * Forwards every connection to egress from `ports` of the loopback address: free ones of this machine, or those inside the sandbox.
 * `close` may be repeated.
 */
export async function startEgressForwarder(options: ForwarderOptions) {
  const { to, folder, maxConnections } = options;
  const all = new Map<number, { readonly server: Server; readonly open: Set<Socket> }>();
  /** Ends every connection of a port, so that its next user finds none that counts. */
  const endConnections = (port: number) => {
    for (const socket of all.get(port)?.open ?? []) end(socket);
  };
  const close = async () => {
    const closed = [...all.values()].map(({ server }) => new Promise((resolve) => server.close(resolve)));
    for (const { open } of all.values()) for (const socket of open) socket.destroy();
    await Promise.all(closed);
  };
  try {
    for (let n = 0; n < options.ports; n++) {
      const open = new Set<Socket>();
      const server = makeServer(to, maxConnections, open);
      const inside = firstInsidePort + n;
      const port = folder === null ? await listenAtFreePort(server) : await listenInFolder(server, folder, inside);
      all.set(port, { server, open });
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { ports: [...all.keys()], endConnections, close };
}

/**
 * Egress sees by a reset that the client is gone; after a mere end it counts the connection for some seconds more. Node 24 never closes a
 * connection that is reset while its end is on the way, so that the process would not end, and cannot tell that of one below TLS.
 */
function end(socket: Socket): void {
  const isEnding = socket.writableEnded && !socket.writableFinished;
  if (socket.remoteAddress === undefined || isEnding || 'encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}

function makeServer(to: ServerAddress, maxConnections: number, open: Set<Socket>): Server {
  let taken = 0;
  return createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = taken < maxConnections ? connectTo(to) : null;
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

/** Every user may connect: the folder above is closed to those who must not. */
async function listenInFolder(server: Server, folder: string, port: number): Promise<number> {
  const address = { path: join(folder, String(port)), readableAll: true, writableAll: true };
  await listenAt(server, address);
  return port;
}

async function listenAtFreePort(server: Server): Promise<number> {
  for (;;) {
    const port = randomInt(portRange.first, portRange.last + 1);
    try {
      return await listenAt(server, { host: '127.0.0.1', port });
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw error;
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
