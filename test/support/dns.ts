import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

/**
 * The addresses of a name, which is asked for its records A or AAAA; without any it does not exist, null is no answer at all, and
 * `failed` is SERVFAIL. The root has an empty name.
 */
export type Answers = (name: string, type: string) => readonly string[] | null | 'failed';

export interface TestDns {
  readonly port: number;
  /** Questions so far, as `A example.com`. */
  readonly asked: string[];
  /** The answers from now on. */
  answers: Answers;
  readonly close: () => void;
}

const types: Record<number, string> = { 1: 'A', 28: 'AAAA' };

/** Starts a real DNS server, on the loopback address and a free port unless told otherwise. */
export async function startDns(host = '127.0.0.1', port = 0): Promise<TestDns> {
  const socket = createSocket('udp4');
  const dns: TestDns = { port: 0, asked: [], answers: () => [], close: () => socket.close() };
  socket.on('message', (query, from) => {
    const { name, type, end } = readQuestion(query);
    const typeName = types[type] ?? String(type);
    dns.asked.push(`${typeName} ${name}`);
    const addresses = dns.answers(name, typeName);
    if (addresses === null) return;
    const fitting = addresses === 'failed' ? [] : addresses.filter((address) => (isIPv6(address) ? 28 : 1) === type);
    const code = addresses === 'failed' ? 2 : addresses.length > 0 ? 0 : 3;
    socket.send(writeAnswer(query.subarray(0, end), type, code, fitting), from.port, from.address);
  });
  socket.bind(port, host);
  await once(socket, 'listening');
  return Object.assign(dns, { port: socket.address().port });
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function writeAnswer(question: Buffer, type: number, code: number, addresses: readonly string[]): Buffer {
  const head = Buffer.from(question.subarray(0, 12));
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  const records = addresses.map((address) => {
    const bytes = bytesOf(address);
    // The name of the question, its type, class IN, ten seconds to live.
    return Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 10, 0, bytes.length]), bytes]);
  });
  return Buffer.concat([head, question.subarray(12), ...records]);
}

function bytesOf(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail = ''] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const [first, last] = [head, tail].map((part) => part.split(':').filter(Boolean));
  const zeros = Array.from({ length: 8 - first!.length - last!.length }, () => '0');
  return Buffer.from([...first!, ...zeros, ...last!].map((part) => part.padStart(4, '0')).join(''), 'hex');
}
