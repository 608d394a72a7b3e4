import { connect } from 'node:net';
import fc from 'fast-check';
import type { ServerAddress } from '../../../src/base/server-address.ts';

/** What a grammar of HTTP requests may choose from. */
export interface RequestWords {
  readonly methods: readonly string[];
  readonly targets: fc.Arbitrary<string>;
  readonly headers: readonly (readonly [name: string, values: fc.Arbitrary<string>])[];
  readonly bodies: fc.Arbitrary<string>;
}

/** One change of bytes: a byte set, a range cut or doubled, or a piece put in. */
interface Change {
  readonly is: 'set' | 'cut' | 'double' | 'insert';
  readonly at: number;
  readonly byte: number;
  readonly length: number;
  readonly piece: string;
}

const pieces = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
  '\t',
  '\r\n\r\n',
  '0\r\n\r\n',
  'ffffffff\r\n',
  ' HTTP/1.1',
  '\xff',
  '%00',
  ',',
];

/** Values that parsers are known to read in more than one way. */
export const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => Buffer.from(text).toString('latin1')),
  fc.constantFrom(
    '',
    '-1',
    '0',
    '+5',
    '1e309',
    'NaN',
    'null',
    '__proto__',
    'toString',
    '../..',
    '\0',
    '%',
    '%zz',
    '\u00ff\u00fe',
    'a'.repeat(9000),
  ),
);

const framing = fc.constantFrom<readonly string[]>(
  ...[
    [],
    [],
    [],
    ['Content-Length: 0'],
    ['Content-Length: 5', 'Content-Length: 6'],
    ['Content-Length: 99999999999999999999'],
  ],
  ...[
    ['Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked', 'Content-Length: 5'],
    ['Transfer-Encoding: gzip, chunked'],
  ],
  ...[
    ['Expect: 100-continue'],
    ['Connection: close'],
    ['Connection: upgrade', 'Upgrade: websocket'],
    ['Connection: keep-alive, x-api-key'],
  ],
);

/** Bytes that are, or almost are, one or several HTTP requests. */
export function requestBytes(words: RequestWords): fc.Arbitrary<Buffer> {
  const method = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...words.methods) }, oddText);
  const version = fc.oneof(
    { weight: 19, arbitrary: fc.constant('HTTP/1.1') },
    fc.constantFrom('HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1 x', ''),
  );
  const known = fc.oneof(...words.headers.map(([name, values]) => values.map((value) => `${name}: ${value}`)));
  const header = fc.oneof(
    { weight: 8, arbitrary: known },
    fc.tuple(oddText, oddText).map((pair) => pair.join(': ')),
  );
  const request = fc.record({
    start: fc.tuple(method, words.targets, version).map((parts) => parts.join(' ')),
    headers: fc.array(header, { maxLength: 6 }),
    framing,
    body: words.bodies,
    isFramed: fc.boolean(),
  });
  const text = request.map(({ start, headers, framing, body, isFramed }) => {
    const framed = isFramed && body !== '' ? [`Content-Length: ${Buffer.byteLength(body)}`] : framing;
    const chunked = framed[0]?.includes('chunked')
      ? `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`
      : body;
    const head = [start, 'Host: a', ...headers, ...framed, '', ''].join('\r\n');
    return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(chunked)]);
  });
  const change = fc.record<Change>({
    is: fc.constantFrom('set', 'cut', 'double', 'insert'),
    at: fc.nat(4000),
    byte: fc.nat(255),
    length: fc.nat(40),
    piece: fc.constantFrom(...pieces),
  });
  const changes = fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(change, { maxLength: 5 }));
  const several = fc.array(text, { minLength: 1, maxLength: 3 }).map((all) => Buffer.concat(all));
  return fc.tuple(several, changes).map(([bytes, all]) => all.reduce(change1, bytes));
}

function change1(bytes: Buffer, { is, at, byte, length, piece }: Change): Buffer {
  const place = bytes.length === 0 ? 0 : at % bytes.length;
  const [before, range, after] = [
    bytes.subarray(0, place),
    bytes.subarray(place, place + length),
    bytes.subarray(place + length),
  ];
  if (is === 'cut') return Buffer.concat([before, after]);
  if (is === 'double') return Buffer.concat([before, range, range, after]);
  const given = is === 'set' ? Buffer.from([byte]) : Buffer.from(piece, 'latin1');
  return Buffer.concat([before, given, is === 'set' ? bytes.subarray(place + 1) : bytes.subarray(place)]);
}

/** Replaces words in bytes, such as `{key}` by a key that is made only when the test runs. */
export function fill(bytes: Buffer, words: Readonly<Record<string, string>>): Buffer {
  const text = bytes.toString('latin1').replaceAll(/\{(\w+)\}/g, (found, name) => words[name] ?? found);
  return Buffer.from(text, 'latin1');
}

/** Sends bytes over a connection of their own, half-closes it, and returns all that came back once the server has closed. */
export function converse(address: ServerAddress, bytes: Buffer, hangMs = 15_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...address, allowHalfOpen: true });
    let text = '';
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
      // A stream of events goes on until its reader leaves.
      if (/^content-type: text\/event-stream/im.test(text)) socket.destroy();
    });
    // A server may close before it has read all.
    socket.on('error', () => undefined);
    socket.once('end', () => socket.end());
    const limit = setTimeout(() => {
      reject(
        new Error(
          `The server keeps the connection open after ${hangMs} ms, having said ${JSON.stringify(text.slice(0, 500))}`,
        ),
      );
      socket.destroy();
    }, hangMs);
    socket.once('close', () => {
      clearTimeout(limit);
      resolve(text);
    });
    socket.end(bytes);
  });
}

/** Returns the status of every answer in what a server said. */
export function statusesOf(text: string): number[] {
  return [...text.matchAll(/(?:^|\n|[}\n])HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
