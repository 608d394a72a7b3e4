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

interface ProbeAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/**
 * Serves /healthz, /readyz and /metrics on the inner port that every role has, or on a socket. `close` stops answering, open connections
 * included; may be repeated.
 */
export async function startProbeServer({ at, metrics, ready }: ProbeOptions) {
  const server = createServer(async (request, response) => {
    const { status, type, body } = await answer(request, metrics, ready).catch((error) => plain(500, String(error)));
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
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'method not allowed');
  const path = url.split('?')[0];
  if (path === '/healthz') return plain(200, 'ok');
  if (path === '/readyz') return readiness(await ready());
  if (path !== '/metrics') return plain(404, 'not found');
  return { status: 200, type: metrics.registry.contentType, body: await renderMetrics(metrics) };
}

function readiness(missing: readonly string[]): ProbeAnswer {
  const ready = missing.length === 0;
  const body = JSON.stringify(ready ? { ready } : { ready, missing });
  return { status: ready ? 200 : 503, type: 'application/json', body };
}

function plain(status: number, body: string): ProbeAnswer {
  return { status, type: 'text/plain; charset=utf-8', body };
}
