import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { EgressVerdict } from '../base/egress-verdict.ts';
import type { Exchange } from './proxied-connection.ts';
import { readFraming, readTunnelTarget } from './proxy-request.ts';
import { refusalOf, sendRefusal } from './refusal-response.ts';

/** Serves a CONNECT: copies bytes both ways until one side ends, or refuses with the verdict. */
export async function tunnel(
  request: IncomingMessage,
  client: Socket,
  head: Buffer,
  exchange: Exchange,
): Promise<void> {
  const target = readTunnelTarget(request.url ?? '');
  if (target === null || readFraming(request)?.length !== 0) return refuse(client, 'refused_request', exchange);
  const reached = await exchange.reach(target);
  if (reached.verdict !== 'open') return refuse(client, reached.verdict, exchange, reached.late);
  if (client.destroyed) return exchange.end('open');
  const upstream = reached.socket;
  let verdict: EgressVerdict = 'open';
  exchange.watch(upstream, () => {
    verdict = 'limited';
    client.destroy();
    upstream.destroy();
  });
  const endBoth = () => {
    // A side that ended by itself lets the other one send what it still has; the watch stays until both are closed.
    if (upstream.closed && !upstream.readableEnded) client.destroy();
    if (client.closed && !(client.readableEnded && client.writableFinished)) upstream.destroy();
    if (client.closed && upstream.closed) exchange.end(verdict);
  };
  client.once('close', endBoth);
  upstream.once('close', endBoth);
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  upstream.write(head);
  client.pipe(upstream).pipe(client);
}

function refuse(client: Socket, verdict: Exclude<EgressVerdict, 'open'>, exchange: Exchange, late?: boolean): void {
  exchange.end(verdict);
  sendRefusal(client, refusalOf(verdict, late));
}
