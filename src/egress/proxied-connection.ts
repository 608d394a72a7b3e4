import type { Socket } from 'node:net';
import type { EgressVerdict } from '../base/egress-verdict.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { ClientConnection } from './client-connections.ts';
import { bytesOf, type ConnectionLimit, type LimitWatch } from './connection-limits.ts';
import type { Connect, ConnectResult, Target } from './connector.ts';

interface ProxiedConnectionOptions {
  readonly client: ClientConnection;
  readonly socket: Socket;
  readonly connect: Connect;
  readonly watch: LimitWatch;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'egress_connections_total'>;
  readonly onEnd: () => void;
}

export type ProxiedConnection = ReturnType<typeof beginConnection>;

/** Begins to account for a connection. Nothing of it is logged but its host, port and size: never a path. */
export function beginConnection(options: ProxiedConnectionOptions) {
  const { client, socket, connect, watch, log, metrics, onEnd } = options;
  const startMs = performance.now();
  const left = new AbortController();
  const leave = () => left.abort();
  socket.once('close', leave);
  let target: Target | undefined;
  let found: Extract<ConnectResult, { verdict: 'open' }> | undefined;
  let cut: ConnectionLimit | undefined;
  let unwatch = () => {};
  let over = false;
  return {
    /** Connects to a target for as long as the client is there. */
    connect: async (wanted: Target): Promise<ConnectResult> => {
      target = wanted;
      if (client.isSurplus) return { verdict: 'limited' };
      const reached = await connect(wanted, left.signal);
      if (reached.verdict === 'open') found = reached;
      return reached;
    },
    limit: (upstream: Socket, end: (limit: ConnectionLimit) => void) => {
      unwatch = watch.add(socket, upstream, (limit) => {
        cut = limit;
        end(limit);
      });
    },
    /** Leaves the source, counts and logs the verdict; only the first one counts. */
    end: (verdict: EgressVerdict) => {
      if (over) return;
      over = true;
      unwatch();
      found?.socket.destroy();
      socket.off('close', leave);
      metrics.egress_connections_total.inc({ verdict });
      log.info('egress connection ended', {
        verdict,
        client: client.client,
        host: target?.host,
        port: target?.port,
        address: found?.address,
        bytes: found && bytesOf(found.socket),
        cut,
        seconds: Math.round(performance.now() - startMs) / 1000,
      });
      onEnd();
    },
  };
}
