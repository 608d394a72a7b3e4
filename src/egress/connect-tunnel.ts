import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { EgressRefusal, EgressVerdict } from '../base/egress-verdict.ts';
import type { ProxiedConnection } from './proxied-connection.ts';
import { readFraming, readTunnelTarget } from './proxy-request.ts';
import { type RefusalCause, refusalResponse, sendRefusal } from './refusal-response.ts';

/** Serves a CONNECT: copies bytes both ways until one side ends, or refuses with the verdict. */
export async function serveTunnel(
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
  connection: ProxiedConnection,
): Promise<void> {
  const target = readTunnelTarget(request.url ?? '');
  if (target === null || readFraming(request)?.length !== 0) return refuse(client, 'refused_request', connection);
  const reached = await connection.connect(target);
  if (reached.verdict !== 'open') return refuse(client, reached.verdict, connection, reached);
  if (client.destroyed) return connection.end('open');
  const upstream = reached.socket;
  let verdict: EgressVerdict = 'open';
  connection.limit(upstream, () => {
    verdict = 'limited';
    client.destroy();
    upstream.destroy();
  });
  const endBoth = () => {
    // A side that ended by itself lets the other one send what it still has; the watch stays until both are closed.
    if (upstream.closed && !upstream.readableEnded) client.destroy();
    if (client.closed && !(client.readableEnded && client.writableFinished)) upstream.destroy();
    if (client.closed && upstream.closed) connection.end(verdict);
  };
  client.once('close', endBoth);
  upstream.once('close', endBoth);
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  upstream.write(head);
  client.pipe(upstream).pipe(client);
}

function refuse(client: Socket, verdict: EgressRefusal, connection: ProxiedConnection, cause?: RefusalCause): void {
  connection.end(verdict);
  sendRefusal(client, refusalResponse(verdict, cause));
}
