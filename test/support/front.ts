import { once } from 'node:events';
import { createServer as createPlain, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

/** What becomes of one upload of a part: a status instead of the store's, a broken connection, or silence. */
export type Fault = number | 'cut' | 'hang';

/** A server before an object store that passes everything on, and sometimes fails. */
export interface Front {
  readonly port: number;
  /** What becomes of the next uploads of parts; those after them arrive. */
  readonly fail: (...faults: Fault[]) => void;
  /** How many uploads of parts there were, those that failed among them. */
  readonly uploads: () => number;
  readonly stop: () => Promise<void>;
}

/** Starts it before a server of this machine; with a certificate it speaks TLS. */
export async function startFront(origin: string, certificate?: { key: string; cert: string }): Promise<Front> {
  const sockets = new Set<Socket>();
  let faults: Fault[] = [];
  let uploads = 0;
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    if (!req.url?.includes('partNumber=')) return passOn(origin, req, res);
    uploads += 1;
    const fault = faults.shift();
    if (fault === undefined) passOn(origin, req, res);
    else if (typeof fault === 'number') req.resume().once('end', () => res.writeHead(fault).end());
    // The first bytes have arrived then.
    else if (fault === 'cut') req.once('data', () => req.socket.destroy());
  };
  const server = certificate ? createSecure(certificate, serve) : createPlain(serve);
  server.on(certificate ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    fail: (...told) => {
      faults = told;
    },
    uploads: () => uploads,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Under the name that was asked for, because that is signed. */
function passOn(origin: string, req: IncomingMessage, res: ServerResponse): void {
  const { method, headers } = req;
  const asked = request(origin + req.url, { method, headers, agent: false }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(res);
  });
  asked.on('error', () => res.destroy());
  req.pipe(asked);
}
