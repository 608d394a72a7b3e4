import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type RequestListener,
  request,
} from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { makeLog } from '../../src/base/log.ts';
import { makeMetrics } from '../../src/base/metrics.ts';
import type { ServerAddress } from '../../src/base/server-address.ts';
import type { CertificateFiles } from '../../src/base/server-certificate.ts';
import { exceptions, networks } from '../../src/base/settings/kinds.ts';
import { makePolicy } from '../../src/egress/address-policy.ts';
import { type ConnectorOptions, makeConnector } from '../../src/egress/connector.ts';
import { makeProxy, type ProxyLimits } from '../../src/egress/proxy.ts';
import { makeResolve } from '../../src/egress/resolver.ts';

export interface EgressOptions {
  readonly allow?: string;
  readonly deny?: string;
  readonly ports?: readonly number[];
  readonly limits?: Partial<ProxyLimits>;
  /** The port of the only resolver, on the loopback address; nobody is there unless told. */
  readonly dnsPort?: number;
  readonly dnsSeconds?: number;
  readonly connectSeconds?: number;
  readonly dial?: ConnectorOptions['dial'];
  readonly address?: ServerAddress;
  readonly certificate?: CertificateFiles;
}

export interface TestEgress {
  readonly address: ServerAddress;
  /** The lines of its log. */
  readonly lines: Record<string, unknown>[];
  /** Number of connections by verdict. */
  readonly counts: () => Promise<Record<string, number>>;
  readonly close: (drainSeconds?: number) => Promise<void>;
}

const limits: ProxyLimits = {
  connections: 100,
  connectionsPerClient: 50,
  bytes: 1e9,
  idleSeconds: 30,
  leftSeconds: 30,
  totalSeconds: 30,
  headerBytes: 16_384,
  headerSeconds: 30,
};

/** The address that sources of these tests listen on; it is excepted, and every other loopback address is not. */
export const openAddress = '127.0.0.2';
/** An address that no connection may ever reach. */
export const closedAddress = '127.0.0.3';

/** Starts a proxy in this process, where 127.0.0.2 is open. */
export async function startEgress(options: EgressOptions = {}): Promise<TestEgress> {
  const {
    allow = `${openAddress}:*`,
    deny = '',
    ports = [80, 443],
    dnsPort = 9,
    dnsSeconds = 30,
    connectSeconds = 30,
  } = options;
  const policy = makePolicy({
    ports,
    allow: exceptions.read(allow)!,
    deny: networks.read(deny)!,
    ownAddresses: () => [],
  });
  const servers = [{ host: '127.0.0.1', port: dnsPort }];
  const resolve = await makeResolve({ servers, limitSeconds: dnsSeconds, ownAddresses: () => [] });
  const reach = makeConnector({ policy, resolve, connectSeconds, ...(options.dial && { dial: options.dial }) });
  const lines: Record<string, unknown>[] = [];
  const log = makeLog({ level: 'info', now: Date.now, write: (line) => lines.push(JSON.parse(line)) });
  const metrics = makeMetrics();
  const { certificate = null } = options;
  const proxy = makeProxy({ connect: reach, limits: { ...limits, ...options.limits }, log, metrics, certificate });
  const asked = options.address ?? { host: '127.0.0.1', port: 0 };
  const port = await proxy.listen(asked);
  return {
    address: 'path' in asked ? asked : { host: asked.host, port },
    lines,
    counts: async () => {
      const values = (await metrics.egress_connections_total.get()).values.filter(({ value }) => value > 0);
      return Object.fromEntries(values.map(({ labels, value }) => [labels.verdict, value]));
    },
    close: (drainSeconds = 0) => proxy.close(drainSeconds),
  };
}

export interface TestSource {
  readonly port: number;
  /** `host:port` of it. */
  readonly authority: string;
  readonly url: string;
  /** Connections that came. */
  readonly sockets: Socket[];
  readonly close: () => Promise<void>;
}

/** Starts a server of HTTP. */
export function startSource(answer: RequestListener, address = openAddress, port = 0): Promise<TestSource> {
  return listen(createServer({ keepAliveTimeout: 60_000 }, answer), address, port);
}

/** Starts a server that speaks whatever it likes. */
export function startRaw(greet: (socket: Socket) => void, address = openAddress, port = 0): Promise<TestSource> {
  return listen(createTcpServer({ allowHalfOpen: true }, greet), address, port);
}

async function listen(server: ReturnType<typeof createTcpServer>, address: string, port: number): Promise<TestSource> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
    // Clients of these tests break off as they like.
    socket.on('error', () => undefined).on('end', () => socket.end());
  });
  server.listen(port, address);
  await once(server, 'listening');
  const opened = (server.address() as AddressInfo).port;
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port: opened, authority: `${address}:${opened}`, url: `http://${address}:${opened}/`, sockets, close };
}

export interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  readonly verdict: string | undefined;
  readonly body: string;
}

export interface Question {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders | readonly string[];
  readonly body?: string | Buffer;
}

/** Asks for a URL through a proxy. */
export async function ask(
  place: ServerAddress,
  url: string,
  { method = 'GET', headers = {}, body }: Question = {},
): Promise<Answer> {
  const target = 'path' in place ? { socketPath: place.path } : place;
  const asked = request({ ...target, method, path: url, headers: { host: 'a', ...headers }, agent: false });
  asked.end(body);
  const [answer] = await once(asked, 'response');
  const text = String(await buffer(answer));
  const verdict = answer.headers['x-egress-verdict'];
  return { status: answer.statusCode, reason: answer.statusMessage, headers: answer.headers, verdict, body: text };
}

export interface Tunnel {
  readonly status: number;
  readonly reason: string;
  readonly verdict: string | undefined;
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Asks a proxy for a tunnel. */
export async function openTunnel(
  place: ServerAddress,
  authority: string,
  headers: OutgoingHttpHeaders = {},
): Promise<Tunnel> {
  const target = 'path' in place ? { socketPath: place.path } : place;
  const asked = request({ ...target, method: 'CONNECT', path: authority, headers, agent: false });
  asked.end();
  const [answer, socket, head] = await once(asked, 'connect');
  socket.on('error', () => undefined);
  const verdict = answer.headers['x-egress-verdict'];
  return { status: answer.statusCode, reason: answer.statusMessage, verdict, socket, head };
}

/** Opens a plain connection to a place. */
export async function dialProxy(place: ServerAddress): Promise<Socket> {
  const socket = connect({ ...place, allowHalfOpen: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Sends bytes as they are and gives all that comes back until the other side closes. */
export async function talk(place: ServerAddress, ...parts: (string | Buffer)[]): Promise<string> {
  const socket = await dialProxy(place);
  for (const part of parts) socket.write(part);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  socket.destroy();
  return Buffer.concat(chunks).toString('latin1');
}
