import { request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { EgressVerdict } from '../base/egress-verdict.ts';
import type { Exchange } from './proxied-connection.ts';
import { type PlainTarget, passOn, readFraming, readPlainTarget } from './proxy-request.ts';
import { refusalOf } from './refusal-response.ts';

/** Forwards a plain HTTP request to its server and the answer back, or refuses with the verdict. */
export async function forward(request: IncomingMessage, response: ServerResponse, exchange: Exchange): Promise<void> {
  const target = readPlainTarget(request.url ?? '');
  const framing = readFraming(request);
  if (target === null || framing === null) return refuse(response, 'refused_request', exchange);
  const reached = await exchange.reach(target);
  if (reached.verdict !== 'open') return refuse(response, reached.verdict, exchange, reached.late);
  if (response.destroyed) return exchange.end('open');
  response.once('close', () => exchange.end('open'));
  exchange.watch(reached.socket, (limit) => {
    const silent = limit === 'idle' && !response.headersSent;
    refuse(response, silent ? 'failed_answer' : 'limited', exchange, silent);
  });
  relay(request, response, send(request, target, framing, reached.socket), exchange);
}

/** Sends the request on over a connection that serves nothing else. */
function send(request: IncomingMessage, target: PlainTarget, framing: readonly string[], upstream: Socket) {
  const { method = 'GET', rawHeaders, headers } = request;
  const hasBody = framing.length > 0;
  const asked = ask({
    createConnection: () => upstream,
    method,
    path: target.path,
    headers: ['Host', target.authority, ...passOn(rawHeaders, headers.connection), ...framing, 'Connection', 'close'],
    insecureHTTPParser: false,
    maxHeaderSize: 65_536,
  });
  if (hasBody) request.pipe(asked);
  else asked.end();
  return asked;
}

function relay(
  request: IncomingMessage,
  response: ServerResponse,
  asked: ReturnType<typeof ask>,
  exchange: Exchange,
): void {
  const fail = () => {
    if (!response.headersSent) refuse(response, 'failed_answer', exchange);
  };
  asked.on('error', fail);
  // A change of protocol that nobody asked for is followed by this alone.
  asked.once('close', fail);
  asked.once('response', (answer) => {
    // It may come just when a limit has been passed.
    if (response.headersSent) return answer.destroy();
    const { statusCode = 502, rawHeaders, headers } = answer;
    const length = headers['transfer-encoding'] === undefined ? headers['content-length'] : undefined;
    const frame = length === undefined ? [] : ['Content-Length', length];
    // A client that still sends would be read to its end before its next request.
    if (!request.complete) response.shouldKeepAlive = false;
    response.sendDate = false;
    try {
      response.writeHead(statusCode, [...passOn(rawHeaders, headers.connection), ...frame]);
    } catch {
      // A status below 100 or a header that the platform would not write.
      return refuse(response, 'failed_answer', exchange);
    }
    pipeline(answer, response, () => exchange.end('open'));
  });
}

/** Refuses with the verdict; a client that already has part of an answer is cut off. */
function refuse(
  response: ServerResponse,
  verdict: Exclude<EgressVerdict, 'open'>,
  exchange: Exchange,
  late?: boolean,
): void {
  exchange.end(verdict);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, reason, headers, body } = refusalOf(verdict, late);
  response.writeHead(status, reason, headers);
  response.end(body);
}
