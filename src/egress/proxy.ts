import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { type GuestLimits, makeGuests } from './client-connections.ts';
import { tunnel } from './connect-tunnel.ts';
import { startWatch, type WatchLimits } from './connection-limits.ts';
import type { Reach } from './connector.ts';
import { forward } from './forward-http.ts';
import { beginExchange, type Exchange } from './proxied-connection.ts';
import { refusalOf, sendRefusal } from './refusal-response.ts';

export interface ProxyLimits extends WatchLimits, GuestLimits {
  readonly headerBytes: number;
  readonly headerSeconds: number;
}

export interface ProxyOptions {
  readonly reach: Reach;
  readonly limits: ProxyLimits;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'egress_connections_total'>;
}

/**
 * Where clients come in. On a port each address is one client. A socket is shared by the parts of one machine: each worker
 * holds its own children to a number of connections, so that none of them takes the room of another.
 */
export type Place = { readonly path: string } | { readonly host: string; readonly port: number };

export interface Proxy {
  /** Lets clients in at one more place, and gives its port, or 0 for a socket. */
  readonly listen: (place: Place) => Promise<number>;
  /** Lets nobody in any more, ends what is still under way after so many seconds; may be repeated. */
  readonly close: (drainSeconds: number) => Promise<void>;
}

const keepAliveMs = 5000;
const statuses: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

type Begin = (socket: Socket) => Exchange | undefined;

/** Makes a forward proxy for plain HTTP and CONNECT that connects only to addresses that the policy opens. */
export function makeProxy({ reach, limits, log, metrics }: ProxyOptions): Proxy {
  const guests = makeGuests(limits);
  const watch = startWatch(limits);
  const servers: Server[] = [];
  const drained = Promise.withResolvers<void>();
  let closing: Promise<void> | undefined;

  const isBusy = () => guests.list().some(([, { busy }]) => busy);
  const admit = (socket: Socket, place: Place) => {
    const shared = 'path' in place;
    // An error is followed by the close, and that is what everybody here waits for.
    socket.on('error', () => undefined);
    if (guests.add(socket, shared ? place.path : (socket.remoteAddress ?? ''), shared)) return;
    metrics.egress_connections_total.inc({ verdict: 'limited' });
    socket.destroy();
  };
  const begin: Begin = (socket) => {
    const guest = guests.get(socket);
    if (!guest || guest.busy) {
      // A client that asks a second thing before it has the answer to the first could open any number of connections.
      socket.destroy();
      return undefined;
    }
    guest.busy = true;
    const ended = () => {
      guest.busy = false;
      if (closing && !isBusy()) drained.resolve();
    };
    return beginExchange({ guest, socket, reach, watch, log, metrics, ended });
  };
  const close = async (drainSeconds: number) => {
    const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
    if (isBusy()) await Promise.race([drained.promise, pause(drainSeconds * 1000, undefined, { ref: false })]);
    for (const [socket] of guests.list()) socket.destroy();
    watch.close();
    await Promise.all(closed);
  };
  return {
    listen: async (place) => {
      const server = makeServer(limits, begin, (error) => log.error('egress failed', { error }));
      servers.push(server);
      server.on('connection', (socket) => admit(socket, place));
      server.listen(place);
      await once(server, 'listening');
      // Without file descriptors no connection can be taken, which passes.
      server.on('error', (error) => log.error('egress takes no connection', { error }));
      const address = server.address();
      return typeof address === 'object' ? (address?.port ?? 0) : 0;
    },
    close: (drainSeconds) => {
      closing ??= close(drainSeconds);
      return closing;
    },
  };
}

function makeServer(
  { headerBytes, headerSeconds }: ProxyLimits,
  begin: Begin,
  failed: (error: unknown) => void,
): Server {
  const server = createServer({
    connectionsCheckingInterval: 500,
    headersTimeout: headerSeconds * 1000,
    insecureHTTPParser: false,
    keepAliveTimeout: keepAliveMs,
    maxHeaderSize: headerBytes,
    // How long a body may take is a matter of the watch.
    requestTimeout: 0,
  });
  const serve = (socket: Socket, answer: (exchange: Exchange) => Promise<void>) => {
    const exchange = begin(socket);
    if (!exchange) return;
    answer(exchange).catch((error) => {
      failed(error);
      exchange.end('failed_connect');
      socket.destroy();
    });
  };
  server.on('request', (request, response) =>
    serve(request.socket, (exchange) => forward(request, response, exchange)),
  );
  server.on('connect', (request, _, head) =>
    serve(request.socket, (exchange) => tunnel(request, request.socket, head, exchange)),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, client) => {
    const exchange = client.writable ? begin(client as Socket) : undefined;
    exchange?.end('refused_request');
    if (exchange) sendRefusal(client, refusalOf('refused_request', false, statuses[error.code ?? '']));
    else client.destroy();
  });
  return server;
}
