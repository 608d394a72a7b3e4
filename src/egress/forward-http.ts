import { request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { EgressRefusal } from '../base/egress-verdict.ts';
import type { ProxiedConnection } from './proxied-connection.ts';
import { endToEndHeaders, type PlainTarget, readFraming, readPlainTarget } from './proxy-request.ts';
import { type RefusalCause, refusalResponse } from './refusal-response.ts';

export async function forwardHttp(
  request: IncomingMessage,
  response: ServerResponse,
  connection: ProxiedConnection,
): Promise<void> {
  const target = readPlainTarget(request.url ?? '');
  const framing = readFraming(request);
  if (target === null || framing === null) return refuse(response, 'refused_request', connection);
  const reached = await connection.connect(target);
  if (reached.verdict !== 'open') return refuse(response, reached.verdict, connection, reached);
  if (response.destroyed) return connection.end('open');
  response.once('close', () => connection.end('open'));
  connection.limit(reached.socket, (limit) => {
    const silent = limit === 'idle' && !response.headersSent;
    refuse(response, silent ? 'failed_answer' : 'limited', connection, { late: silent });
  });
  relay(request, response, send(request, target, framing, reached.socket), connection);
}

function send(request: IncomingMessage, target: PlainTarget, framing: readonly string[], upstream: Socket) {
  const { method = 'GET', rawHeaders, headers } = request;
  const hasBody = framing.length > 0;
  const asked = ask({
    createConnection: () => upstream,
    method,
    path: target.path,
    headers: [
      'Host',
      target.authority,
      ...endToEndHeaders(rawHeaders, headers.connection),
      ...framing,
      'Connection',
      'close',
    ],
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
  connection: ProxiedConnection,
): void {
  const fail = () => {
    if (!response.headersSent) refuse(response, 'failed_answer', connection);
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
      response.writeHead(statusCode, [...endToEndHeaders(rawHeaders, headers.connection), ...frame]);
    } catch {
      // A status below 100 or a header that the platform would not write.
      return refuse(response, 'failed_answer', connection);
    }
    pipeline(answer, response, () => connection.end('open'));
  });
}

/** Refuses with the verdict; a client that already has part of an answer is cut off. */
function refuse(
  response: ServerResponse,
  verdict: EgressRefusal,
  connection: ProxiedConnection,
  cause?: RefusalCause,
): void {
  connection.end(verdict);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, reason, headers, body } = refusalResponse(verdict, cause);
  response.writeHead(status, reason, headers);
  response.end(body);
}
