import { Agent, buildConnector } from 'undici';
import type { ClusterAccess } from './cluster-access.ts';

const maxConnections = 8;

export type KubeConnections = ReturnType<typeof connect>;

/** Returns the connections to an API server. None is opened yet: each is made when it is needed. */
export function connect(tls: ClusterAccess['tls'], answerMs: number) {
  const limits = {
    keepAliveTimeout: 60_000,
    // Each request has a time limit of its own.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const connectorOf = (allowH2: boolean): buildConnector.connector => {
    // Connecting may take twice the request timeout: the request has failed by then, the connection is still useful.
    const usual = { allowH2, timeout: 2 * answerMs, keepAlive: true, keepAliveInitialDelay: 30_000 };
    return (to, opened) => {
      tls()
        .then((now) => buildConnector({ ...usual, ...now })(to, opened))
        .catch((error: Error) => opened(error, null));
    };
  };
  const requests = new Agent({ ...limits, allowH2: true, connect: connectorOf(true), connections: maxConnections });
  // Over HTTP/1.1, so each has a connection of its own. When an API server sends GOAWAY, such as to spread its clients, undici repeats
  // nothing that was turned back before the last stream of that connection has ended, and a watch takes minutes.
  const streams = new Agent({ ...limits, allowH2: false, connect: connectorOf(false) });
  const destroy = (error: Error | null = null) => Promise.all([requests.destroy(error), streams.destroy(error)]);
  return { requests, streams, destroy };
}
