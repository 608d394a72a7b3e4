import { createServer, type IncomingMessage } from 'node:http';
import { closeServer } from './close-server.ts';
import { type Metrics, renderMetrics } from './metrics.ts';
import { listenAt, type ServerAddress } from './server-address.ts';

interface ProbeOptions {
  /** The port is 0 for any free one. */
  readonly at: ServerAddress;
  readonly metrics: Pick<Metrics, 'registry' | 'refreshers'>;
  /** Returns the parts that are not ready yet; none when the role can do its work. */
  readonly ready: () => readonly string[] | Promise<readonly string[]>;
}

type ProbeAnswer = readonly [status: number, body: string, type?: string];

/**
 * Serves /healthz, /readyz and /metrics on the inner port that every role has, or on a socket. `close` stops answering, open connections
 * included; may be repeated.
 */
export async function startProbeServer({ at, metrics, ready }: ProbeOptions) {
  const server = createServer(async (request, response) => {
    const told = await answer(request, metrics, ready).catch((error): ProbeAnswer => [500, String(error)]);
    const [status, body, type = 'text/plain; charset=utf-8'] = told;
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      ...(status === 405 && { allow: 'GET, HEAD' }),
    });
    response.end(body);
  });
  return { port: await listenAt(server, at), close: () => closeServer(server) };
}

async function answer(
  { method, url = '' }: IncomingMessage,
  metrics: ProbeOptions['metrics'],
  ready: ProbeOptions['ready'],
): Promise<ProbeAnswer> {
  if (method !== 'GET' && method !== 'HEAD') return [405, 'method not allowed'];
  const path = url.split('?')[0];
  if (path === '/healthz') return [200, 'ok'];
  if (path === '/metrics') return [200, await renderMetrics(metrics), metrics.registry.contentType];
  if (path !== '/readyz') return [404, 'not found'];
  const missing = await ready();
  const isReady = missing.length === 0;
  return [isReady ? 200 : 503, JSON.stringify({ ready: isReady, ...(!isReady && { missing }) }), 'application/json'];
}
