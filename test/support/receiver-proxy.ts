import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServerAddress } from '../../src/base/server-address.ts';

/** The answer of a receiver: a status, no answer at all, or a handler of its own. */
export type ReceiverAnswer = number | 'hang' | ((req: IncomingMessage, res: ServerResponse) => void);

export interface Received {
  readonly at: number;
  readonly host: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A forward proxy for tests with receivers behind it, each under a name that nothing else resolves. */
export interface ReceiverProxy {
  readonly address: ServerAddress;
  readonly received: Received[];
  /** The most requests that were open at once for each host. */
  readonly most: Map<string, number>;
  /** Sets the answers of a host, one after the other; the last one repeats. */
  readonly answer: (host: string, ...told: ReceiverAnswer[]) => void;
  /** The verdict of the proxy about a host; without one or an answer nobody is there. */
  readonly judge: (host: string, verdict: string, status: number) => void;
  /** Leads CONNECT to a host to this port of the loopback address. */
  readonly lead: (host: string, port: number) => void;
  readonly of: (host: string) => Received[];
  readonly close: () => Promise<void>;
}

type Verdict = readonly [verdict: string, status: number];
const nobody: Verdict = ['failed_connect', 502];

/** Starts a forward proxy on a port of the loopback address, or on a socket. */
export async function startReceiverProxy(path?: string): Promise<ReceiverProxy> {
  const answers = new Map<string, ReceiverAnswer[]>();
  const verdicts = new Map<string, Verdict>();
  const ports = new Map<string, number>();
  const received: Received[] = [];
  const open = new Map<string, number>();
  const most = new Map<string, number>();
  const sockets = new Set<Socket>();

  const server = createServer(async (req, res) => {
    const url = URL.parse(req.url ?? '');
    const told = url && answers.get(url.hostname);
    if (!url || !told) {
      const [verdict, status] = verdicts.get(url?.hostname ?? '') ?? nobody;
      res.writeHead(status, { 'x-egress-verdict': verdict }).end();
      return;
    }
    const now = (open.get(url.hostname) ?? 0) + 1;
    open.set(url.hostname, now);
    most.set(url.hostname, Math.max(now, most.get(url.hostname) ?? 0));
    res.once('close', () => open.set(url.hostname, (open.get(url.hostname) ?? 0) - 1));
    const body = await req.toArray().then(
      (chunks) => Buffer.concat(chunks).toString(),
      // The client has disconnected.
      () => null,
    );
    if (body === null) return;
    const path = url.pathname + url.search;
    received.push({ at: performance.now(), host: url.hostname, path, headers: req.headers, body });
    const answer = told.length > 1 ? told.shift() : told[0];
    if (typeof answer === 'number') res.writeHead(answer).end('ok');
    else if (typeof answer === 'function') answer(req, res);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', (req, client) => {
    const [host = ''] = (req.url ?? '').split(':');
    tunnel(client, ports.get(host), verdicts.get(host) ?? nobody);
  });
  server.listen(path === undefined ? { port: 0, host: '127.0.0.1' } : { path });
  await once(server, 'listening');
  return {
    address: path === undefined ? { host: '127.0.0.1', port: (server.address() as AddressInfo).port } : { path },
    received,
    most,
    answer: (host, ...told) => void answers.set(host, told),
    judge: (host, verdict, status) => void verdicts.set(host, [verdict, status]),
    lead: (host, port) => void ports.set(host, port),
    of: (host) => received.filter((one) => one.host === host),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function tunnel(client: Duplex, port: number | undefined, [verdict, status]: Verdict): void {
  // Either side may break off.
  client.on('error', () => {});
  if (port === undefined) {
    client.end(`HTTP/1.1 ${status} x\r\nx-egress-verdict: ${verdict}\r\ncontent-length: 0\r\n\r\n`);
    return;
  }
  const upstream = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 x\r\n\r\n'));
  upstream.on('error', () => client.destroy());
  client.pipe(upstream).pipe(client);
}
