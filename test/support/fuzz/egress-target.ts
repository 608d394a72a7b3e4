import { expect } from 'chai';
import fc from 'fast-check';
import { startDns } from '../dns.ts';
import { ask, closedAddress, openAddress, startRaw } from '../egress.ts';
import { startRole } from '../role-process.ts';
import { until } from '../until.ts';
import { type Campaign, fuzz } from './campaign.ts';
import { converse, fill, oddText, requestBytes } from './http-bytes.ts';
import { expectStable, residentBytes } from './process-memory.ts';

/** Every address but loopback, so that no changed byte makes a public one of it. */
const beyondLoopback =
  '0.0.0.0/2,64.0.0.0/3,96.0.0.0/4,112.0.0.0/5,120.0.0.0/6,124.0.0.0/7,126.0.0.0/8,128.0.0.0/1,::/0';
const names: Readonly<Record<string, readonly string[]>> = {
  'open.example': [openAddress],
  'closed.example': [closedAddress],
  'mixed.example': [openAddress, closedAddress],
  'mapped.example': [`::ffff:${closedAddress}`],
};
const hosts = [
  ...[
    openAddress,
    openAddress,
    openAddress,
    closedAddress,
    'localhost',
    '127.3',
    '2130706435',
    '0x7f000003',
    '0177.0.0.3',
  ],
  ...[
    '[::1]',
    `[::ffff:${closedAddress}]`,
    '[::127.0.0.3]',
    '127.0.0.3.',
    '①②⑦.0.0.3',
    '',
    'a b',
    ...Object.keys(names),
  ],
  ...[
    `${openAddress}:{port}@${closedAddress}`,
    `${openAddress}:{port}\\@${closedAddress}`,
    `${openAddress}#@${closedAddress}`,
  ],
];

const host = fc.constantFrom(...hosts);
const port = fc.constantFrom(':{port}', ':{port}', ':{port}', '', ':0', ':99999', ':{port}:1', ':+1');
const scheme = fc.oneof(
  { weight: 6, arbitrary: fc.constant('http://') },
  fc.constantFrom('https://', 'ftp://', 'file://', 'http:', '//', 'HTTP:/'),
);
const path = fc.oneof(fc.constantFrom('/', '/a?b=c', '', '/%2e%2e', '\\'), oddText);
const authority = fc.tuple(host, port).map((parts) => parts.join(''));
const target = fc.oneof(
  authority,
  fc.tuple(scheme, authority, path).map((parts) => parts.join('')),
  oddText,
);

const request = requestBytes({
  methods: ['GET', 'POST', 'CONNECT', 'CONNECT', 'HEAD', 'PUT', 'OPTIONS', 'DELETE', 'PRI'],
  targets: target,
  headers: [
    ['Host', fc.oneof(authority, oddText)],
    ['Connection', fc.constantFrom('close', 'keep-alive', 'host', 'upgrade')],
    ['Proxy-Connection', fc.constant('keep-alive')],
    ['Proxy-Authorization', oddText],
    ['X-Egress-Verdict', fc.constantFrom('open', 'refused_address')],
    ['Content-Length', oddText],
    ['Transfer-Encoding', fc.oneof(fc.constant('chunked'), oddText)],
    ['X-Forwarded-For', oddText],
  ],
  bodies: fc.oneof(fc.constant(''), oddText),
});
const body = fc.constantFrom('', 'hello', '5\r\nhello\r\n0\r\n\r\n', 'x'.repeat(70_000), 'HTTP/1.1 200 OK\r\n\r\n');
const answerHeader = fc.oneof(
  fc.constantFrom(
    'Content-Length: 5',
    'Content-Length: 6',
    'Transfer-Encoding: chunked',
    'Connection: keep-alive',
    'Trailer: a',
  ),
  fc.constantFrom(
    'X-Egress-Verdict: open',
    'Upgrade: h2c',
    'Set-Cookie: a=b',
    `X: ${'x'.repeat(9000)}`,
    'Content-Length: -1',
  ),
  fc.tuple(oddText, oddText).map((pair) => pair.join(': ')),
);
const status = fc.oneof(
  { weight: 5, arbitrary: fc.constant('200 OK') },
  fc.constantFrom('100 Continue', '101 Switch', '204 No', '304 Not', '999 x', '0 x', '200'),
);
const answer = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(status, fc.array(answerHeader, { maxLength: 4 }), body)
      .map(([first, lines, rest]) => [`HTTP/1.1 ${first}`, ...lines, '', rest].join('\r\n')),
  },
  oddText,
);
const input = fc.record({
  bytes: request,
  answer: answer.map((text) => Buffer.from(text, 'latin1')),
  end: fc.constantFrom('end', 'end', 'reset'),
});

/** Sends bytes to the role `egress`, and lets a source answer with bytes, for some time. */
export async function fuzzEgress(ms: number): Promise<Campaign> {
  let now: { readonly answer: Buffer; readonly end: string } = { answer: Buffer.alloc(0), end: 'end' };
  let closedHits = 0;
  const source = await startRaw((socket) => {
    const { answer, end } = now;
    socket.once('data', () =>
      end === 'end' ? socket.end(answer) : socket.write(answer, () => socket.resetAndDestroy()),
    );
    socket.resume();
  });
  const closed = await startRaw((socket) => void socket.destroy(void closedHits++), closedAddress, source.port);
  const dns = await startDns();
  dns.answers = (name) => names[name.toLowerCase()] ?? [];
  const env = { TRAWL_EGRESS_ALLOW: `${openAddress}:*`, TRAWL_EGRESS_DENY: beyondLoopback, TRAWL_LOG_LEVEL: 'error' };
  const role = await startRole('egress', { ...env, TRAWL_DNS_SERVERS: `127.0.0.1:${dns.port}` });
  const { hostname, port } = new URL(role.url);
  const address = { host: hostname, port: Number(port) };
  const run = async ({ bytes, ...source1 }: { bytes: Buffer; answer: Buffer; end: string }) => {
    now = source1;
    await converse(address, fill(bytes, { port: String(source.port) }));
    expect(closedHits, 'connections to an address that is not public').to.equal(0);
    expect(role.output()).to.equal('');
    expect(role.process.exitCode).to.equal(null);
  };
  try {
    await fuzz({ name: 'egress', input, run }, ms / 10);
    const warm = residentBytes(role.process.pid!);
    const campaign = await fuzz({ name: 'egress', input, run }, ms);
    await until(() => source.sockets.every((socket) => socket.destroyed), 10, 'the proxy leaves its sources');
    now = { answer: Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), end: 'end' };
    expect((await ask(address, source.url)).body, 'the proxy still works').to.equal('ok');
    expectStable(warm, residentBytes(role.process.pid!), 'egress');
    return campaign;
  } finally {
    await role.end('SIGKILL');
    dns.close();
    await source.close();
    await closed.close();
  }
}
