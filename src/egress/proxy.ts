import type { Server, ServerOptions, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { egressVerdicts } from '../base/egress-verdict.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { listenAt, type ServerAddress } from '../base/server-address.ts';
import { type CertificateFiles, makeHttpServer } from '../base/server-certificate.ts';
import { within } from '../base/within.ts';
import { type ClientLimits, makeClientConnections } from './client-connections.ts';
import { serveTunnel } from './connect-tunnel.ts';
import { type ConnectionLimits, startLimitWatch } from './connection-limits.ts';
import type { Connect } from './connector.ts';
import { forwardHttp } from './forward-http.ts';
import { beginConnection, type ProxiedConnection } from './proxied-connection.ts';
import { refusalResponse, sendRefusal } from './refusal-response.ts';

export interface ProxyLimits extends ConnectionLimits, ClientLimits {
  readonly headerBytes: number;
  readonly headerSeconds: number;
}

interface ProxyOptions {
  readonly connect: Connect;
  readonly limits: ProxyLimits;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'egress_connections_total'>;
  /** With these files ports speak TLS; sockets never do. */
  readonly certificate?: CertificateFiles | null;
}

const keepAliveMs = 5000;
const statuses: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

type Begin = (socket: Socket) => ProxiedConnection | undefined;

export function makeProxy({ connect, limits, log, metrics, certificate = null }: ProxyOptions) {
  const clients = makeClientConnections(limits);
  // Prometheus takes a series for no increase that is born with its first connections.
  for (const verdict of egressVerdicts) metrics.egress_connections_total.inc({ verdict }, 0);
  const watch = startLimitWatch(limits);
  const closers: (() => Promise<void>)[] = [];
  const drained = Promise.withResolvers<void>();
  let closing: Promise<void> | undefined;

  const isBusy = () => clients.list().some(([, { isBusy }]) => isBusy);
  const admit = (socket: Socket, address: ServerAddress) => {
    const isShared = 'path' in address;
    // The close that follows an error is handled.
    socket.on('error', () => undefined);
    if (clients.add(socket, isShared ? address.path : (socket.remoteAddress ?? ''), isShared)) return;
    metrics.egress_connections_total.inc({ verdict: 'limited' });
    socket.destroy();
  };
  const begin: Begin = (socket) => {
    const client = clients.get(socket);
    if (!client || client.isBusy) {
      // A client that asks a second thing before it has the answer to the first could open any number of connections.
      socket.destroy();
      return undefined;
    }
    client.isBusy = true;
    const onEnd = () => {
      client.isBusy = false;
      if (closing && !isBusy()) drained.resolve();
    };
    return beginConnection({ client, socket, connect, watch, log, metrics, onEnd });
  };
  const close = async (drainSeconds: number) => {
    const closed = closers.map((closeServer) => closeServer());
    if (isBusy()) await within(drainSeconds * 1000, drained.promise);
    for (const [socket] of clients.list()) socket.destroy();
    watch.close();
    await Promise.all(closed);
  };
  return {
    /** Returns the port, 0 for a socket. Connection limits per client apply to ports: a socket is shared by many clients. */
    listen: async (address: ServerAddress) => {
      const files = 'path' in address ? null : certificate;
      const failed = (error: unknown) => log.error('egress failed', { error });
      const server = serveProxy(makeHttpServer(files && { files, log }, optionsOf(limits)), begin, failed);
      closers.push(prepareClose(server));
      if (files !== null) limitHandshakes(server, limits.connectionsPerClient);
      server.on(files === null ? 'connection' : 'secureConnection', (socket: Socket) => admit(socket, address));
      const port = await listenAt(server, address);
      // Without file descriptors no connection can be taken, which passes.
      server.on('error', (error) => log.error('egress takes no connection', { error }));
      return port;
    },
    /** Accepts no connection more, ends each after its answer, and cuts connections that have not ended after so many seconds; may be repeated. */
    close: (drainSeconds: number) => {
      closing ??= close(drainSeconds);
      return closing;
    },
  };
}

function optionsOf({ headerBytes, headerSeconds }: ProxyLimits): ServerOptions {
  return {
    connectionsCheckingInterval: 500,
    headersTimeout: headerSeconds * 1000,
    insecureHTTPParser: false,
    keepAliveTimeout: keepAliveMs,
    maxHeaderSize: headerBytes,
    // How long a body may take is a matter of the watch.
    requestTimeout: 0,
  };
}

function serveProxy(server: Server, begin: Begin, onFailure: (error: unknown) => void): Server {
  const serve = (socket: Socket, answer: (connection: ProxiedConnection) => Promise<void>) => {
    const connection = begin(socket);
    if (!connection) return;
    answer(connection).catch((error) => {
      onFailure(error);
      connection.end('failed_connect');
      socket.destroy();
    });
  };
  server.on('request', (request, response) =>
    serve(request.socket, (connection) => forwardHttp(request, response, connection)),
  );
  server.on('connect', (request, _, head) =>
    serve(request.socket, (connection) => serveTunnel(request, request.socket, head, connection)),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, client) => {
    const connection = client.writable ? begin(client as Socket) : undefined;
    connection?.end('refused_request');
    if (connection) sendRefusal(client, refusalResponse('refused_request', {}, statuses[error.code ?? '']));
    else client.destroy();
  });
  return server;
}

/** Closes connections of a client that has so many whose TLS handshake is not over: they count among its connections only afterwards. */
function limitHandshakes(server: Server, maxPerClient: number): void {
  const begun = new Map<string, Set<number>>();
  const finish = ({ address, port }: { readonly address: string; readonly port: number }) => {
    const ports = begun.get(address);
    ports?.delete(port);
    if (ports?.size === 0) begun.delete(address);
  };
  server.on('connection', (socket: Socket) => {
    const client = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 };
    const ports = begun.get(client.address) ?? new Set();
    if (ports.size >= maxPerClient) {
      socket.destroy();
      return;
    }
    begun.set(client.address, ports.add(client.port));
    socket.once('close', () => finish(client));
  });
  server.on('secureConnection', (socket: Socket) => {
    finish({ address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 });
  });
}

/**
 * Returns a function that closes the server and ends each connection after the answer on it. `close()` of Node ends idle connections
 * alone and goes on to serve requests on the others: a client could ask a process that drains for minutes under a policy that is old.
 */
function prepareClose(server: Server): () => Promise<void> {
  const open = new Set<ServerResponse>();
  let isClosing = false;
  server.on('request', (request, response) => {
    open.add(response);
    if (isClosing) response.shouldKeepAlive = false;
    // Its headers may have been sent before the close, and then promise a connection that stays.
    response.once('finish', () => {
      if (isClosing) request.socket.destroySoon();
    });
    response.once('close', () => open.delete(response));
  });
  return async () => {
    isClosing = true;
    for (const response of open) response.shouldKeepAlive = false;
    await new Promise((resolve) => server.close(resolve));
  };
}
