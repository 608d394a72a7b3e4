import type { Socket } from 'node:net';
import type { EgressVerdict } from '../base/egress-verdict.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Guest } from './client-connections.ts';
import { bytesOf, type Cut, type Watch } from './connection-limits.ts';
import type { Reach, Reached, Target } from './connector.ts';

/** One connection that a client asks for, from its request to its end. */
export interface Exchange {
  /** Connects to a target for as long as the client is there. */
  readonly reach: (target: Target) => Promise<Reached>;
  /** Holds the connection to its limits. */
  readonly watch: (upstream: Socket, cut: (limit: Cut) => void) => void;
  /** Leaves the source, counts and logs the verdict; only the first one counts. */
  readonly end: (verdict: EgressVerdict) => void;
}

export interface ExchangeOptions {
  readonly guest: Guest;
  readonly socket: Socket;
  readonly reach: Reach;
  readonly watch: Watch;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'egress_connections_total'>;
  /** Is called once, at the end. */
  readonly ended: () => void;
}

/** Begins to account for a connection. Nothing of it is logged but its host, port and size: never a path. */
export function beginExchange({ guest, socket, reach, watch, log, metrics, ended }: ExchangeOptions): Exchange {
  const startMs = performance.now();
  const left = new AbortController();
  const leave = () => left.abort();
  socket.once('close', leave);
  let target: Target | undefined;
  let found: Extract<Reached, { verdict: 'open' }> | undefined;
  let cut: Cut | undefined;
  let unwatch = () => {};
  let over = false;
  return {
    reach: async (wanted) => {
      target = wanted;
      if (guest.surplus) return { verdict: 'limited' };
      const reached = await reach(wanted, left.signal);
      if (reached.verdict === 'open') found = reached;
      return reached;
    },
    watch: (upstream, end) => {
      unwatch = watch.add({ client: socket, upstream }, (limit) => {
        cut = limit;
        end(limit);
      });
    },
    end: (verdict) => {
      if (over) return;
      over = true;
      unwatch();
      found?.socket.destroy();
      socket.off('close', leave);
      metrics.egress_connections_total.inc({ verdict });
      log.info('egress connection ended', {
        verdict,
        client: guest.client,
        host: target?.host,
        port: target?.port,
        address: found?.address,
        bytes: found && bytesOf(found.socket),
        cut,
        seconds: Math.round(performance.now() - startMs) / 1000,
      });
      ended();
    },
  };
}
