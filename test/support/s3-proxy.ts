import { once } from 'node:events';
import { createServer as createPlain, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

/** The fault of one part upload: a status instead of the store's, a broken connection, or silence. */
export type UploadFault = number | 'cut' | 'hang';

/** A proxy before an object store that forwards everything, and fails part uploads and joins of parts on demand. */
export interface S3Proxy {
  readonly port: number;
  /** Sets the faults of the next part uploads; later ones arrive. */
  readonly fail: (...faults: UploadFault[]) => void;
  /** Has each join of parts answered with status 400 and this error, or with another status, and not passed on. */
  readonly failJoins: (code: string | null, status?: number) => void;
  /** Answers this many questions for an object with 404, as a store does that shows a new object late. */
  readonly hideObjects: (times: number) => void;
  /** Number of part uploads, failed ones included. */
  readonly uploads: () => number;
  readonly stop: () => Promise<void>;
}

/** Starts a proxy before a server of this machine; with a certificate it speaks TLS. */
export async function startS3Proxy(origin: string, certificate?: { key: string; cert: string }): Promise<S3Proxy> {
  const sockets = new Set<Socket>();
  let faults: UploadFault[] = [];
  let uploads = 0;
  let join: { readonly code: string | null; readonly status: number } = { code: null, status: 400 };
  let hidden = 0;
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    if (join.code !== null && req.method === 'POST' && req.url?.includes('uploadId=')) {
      const body = `<Error><Code>${join.code}</Code></Error>\n`;
      req.resume().once('end', () => res.writeHead(join.status, { 'content-type': 'application/xml' }).end(body));
      return;
    }
    if (hidden > 0 && req.method === 'HEAD' && /\/media\./.test(req.url ?? '')) {
      hidden -= 1;
      res.writeHead(404).end();
      return;
    }
    if (!req.url?.includes('partNumber=')) {
      passOn(origin, req, res);
      return;
    }
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
    failJoins: (code, status = 400) => {
      join = { code, status };
    },
    hideObjects: (times) => {
      hidden = times;
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
