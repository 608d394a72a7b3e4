import type { Duplex } from 'node:stream';
import { type EgressRefusal, proxyVerdictHeader } from '../base/egress-verdict.ts';

/** A refused client may send for so long before it is cut off: a reset at once could lose the answer. */
const lingerMs = 1000;

type RefusalResponse = ReturnType<typeof refusalResponse>;

const table: Record<EgressRefusal, readonly [status: number, sentence: string]> = {
  refused_request: [400, 'The proxy does not understand this request.'],
  refused_name: [403, 'This host name is not a public one.'],
  refused_address: [403, 'This host has an address that is not public.'],
  refused_port: [403, 'This port is not open.'],
  failed_dns: [502, 'This host name has no address.'],
  failed_connect: [502, 'This host took no connection.'],
  failed_answer: [502, 'This host gave no valid answer.'],
  limited: [503, 'A limit of the proxy is reached.'],
};

export interface RefusalCause {
  /** DNS or the server did not answer in time. */
  readonly late?: boolean;
  /** The resolvers answer for no name at all. */
  readonly unserved?: boolean;
}

/** Returns the answer for a verdict: with 504 instead of 502 for a late answer, and with 503 when it is our own fault. */
export function refusalResponse(verdict: EgressRefusal, cause: RefusalCause = {}, status = statusOf(verdict, cause)) {
  const body = `${table[verdict][1]}\n`;
  return {
    status,
    /** Some clients show nothing else of a refused CONNECT. */
    reason: verdict,
    headers: {
      [proxyVerdictHeader]: verdict,
      'content-type': 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    },
    body,
  };
}

function statusOf(verdict: EgressRefusal, { late, unserved }: RefusalCause): number {
  const [status] = table[verdict];
  if (status !== 502) return status;
  if (unserved) return 503;
  return late ? 504 : 502;
}

/** Sends it to a client that speaks no HTTP, or no more. What still comes from there is dropped: it is no request. */
export function sendRefusal(client: Duplex, { status, reason, headers, body }: RefusalResponse): void {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  client.end(`HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}\r\n${body}`);
  client.resume();
  const linger = setTimeout(() => client.destroy(), lingerMs);
  client.once('close', () => clearTimeout(linger));
}
