import { randomInt } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { unservedAnswer } from '../base/egress-verdict.ts';
import { codeOf } from '../base/errors.ts';
import { listenAt, type ServerAddress, trustOf, usesTls } from '../base/server-address.ts';

/** Fault of our own installation: egress took no connection, or says that its resolvers answer for no name. */
export type EgressFault = 'unreachable' | 'unserved';

/** Told the fault of each connection of a port, `null` for one that egress answers. No child can make up either. */
export type NoteFault = (port: number, fault: EgressFault | null) => void;

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
  readonly noteFault?: NoteFault;
}

/** A connection that egress has not taken by then is given up, before yt-dlp does at 15 s. */
const maxConnectMs = 10_000;

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
  const { to, folder, maxConnections, noteFault = () => undefined } = options;
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
      const inside = firstInsidePort + n;
      let port = inside;
      const server = makeServer(to, maxConnections, open, (fault) => noteFault(port, fault));
      port = folder === null ? await listenAtFreePort(server) : await listenInFolder(server, folder, inside);
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

function makeServer(
  to: ServerAddress,
  maxConnections: number,
  open: Set<Socket>,
  note: (fault: EgressFault | null) => void,
): Server {
  let taken = 0;
  return createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    if (taken >= maxConnections) return void near.destroy();
    const far = connectTo(to);
    if (far === null) {
      note('unreachable');
      near.destroy();
      return;
    }
    taken++;
    watchAnswer(far, usesTls(to) ? 'secureConnect' : 'connect', note);
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

/** Only egress writes the beginning of an answer: it names all that it gives itself, and a source writes no status line. */
function watchAnswer(far: Socket, connected: string, note: (fault: EgressFault | null) => void): void {
  const fail = () => note('unreachable');
  const timer = setTimeout(() => far.destroy(new Error('egress took no connection in time')), maxConnectMs);
  far.once('error', fail).once('close', () => clearTimeout(timer));
  far.once(connected, () => {
    clearTimeout(timer);
    far.off('error', fail);
  });
  far.once('data', (bytes: Buffer) => {
    const beginning = bytes.toString('latin1', 0, unservedAnswer.length);
    note(beginning === unservedAnswer ? 'unserved' : null);
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
