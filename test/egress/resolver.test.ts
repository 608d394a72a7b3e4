import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { expect } from 'chai';
import { makeResolve } from '../../src/egress/resolver.ts';
import { startDns, type TestDns } from '../support/dns.ts';
import {
  ask,
  closedAddress,
  type EgressOptions,
  openAddress,
  openTunnel,
  startEgress,
  startSource,
  type TestEgress,
  type TestSource,
} from '../support/egress.ts';

const present = new AbortController().signal;

describe('a proxy that resolves names', () => {
  let dns: TestDns;
  let source: TestSource;
  let canary: TestSource;
  let egress: TestEgress;

  before(async () => {
    dns = await startDns();
    source = await startSource((_, response) => response.end('source'));
    // The same port at an address that is not open: only the address tells them apart.
    canary = await startSource((_, response) => response.end('canary'), closedAddress, source.port);
  });
  after(async () => {
    dns.close();
    await source.close();
    await canary.close();
  });
  beforeEach(() => {
    dns.asked.length = 0;
    source.sockets.length = 0;
  });
  afterEach(async () => {
    await egress.close();
    expect(canary.sockets, 'connections to the canary').to.have.length(0);
  });

  const start = async (options: EgressOptions = {}) => {
    egress = await startEgress({ dnsPort: dns.port, ...options });
  };
  /** The verdict on a name: of a plain request and of a tunnel. */
  const verdictsOf = async (name: string) => {
    const plain = await ask(egress.address, `http://${name}:${source.port}/`);
    const tunnel = await openTunnel(egress.address, `${name}:${source.port}`);
    tunnel.socket.destroy();
    expect([plain.status, plain.reason === 'OK' ? undefined : plain.reason]).to.deep.equal([
      tunnel.status,
      tunnel.verdict,
    ]);
    return [plain.status, plain.verdict ?? plain.body];
  };

  it('resolves a name once for a connection, which goes to the judged address', async () => {
    await start();
    dns.answers = () => [dns.asked.length <= 2 ? openAddress : closedAddress];
    const first = await ask(egress.address, `http://rebind.example:${source.port}/`);
    expect([first.status, first.body]).to.deep.equal([200, 'source']);
    expect(dns.asked.sort()).to.deep.equal(['A rebind.example', 'AAAA rebind.example']);
    expect(egress.lines[0]).to.include({ host: 'rebind.example', address: openAddress });
    expect(await verdictsOf('rebind.example'), 'the second time').to.deep.equal([403, 'refused_address']);
    expect(dns.asked).to.have.length(6);
  });

  const rows: [title: string, addresses: string[], answer: [number, string]][] = [
    ['an excepted address', [openAddress], [200, 'source']],
    ['a closed address', [closedAddress], [403, 'refused_address']],
    ['an excepted address and a closed one', [openAddress, closedAddress], [403, 'refused_address']],
    ['a closed address and an excepted one', [closedAddress, openAddress], [403, 'refused_address']],
    ['an excepted address and IPv6 loopback', [openAddress, '::1'], [403, 'refused_address']],
    ['an excepted address and a public one on a closed port', [openAddress, '8.8.8.8'], [403, 'refused_port']],
    ['a public address and a private one', ['8.8.8.8', '10.0.0.1'], [403, 'refused_address']],
    ['a closed IPv4 address inside IPv6', [`::ffff:${closedAddress}`], [403, 'refused_address']],
    ['an IPv4-compatible IPv6 address', [`::${openAddress}`], [403, 'refused_address']],
    ['a 6to4 address', ['2002:7f00:3::'], [403, 'refused_address']],
    ['a NAT64 address', ['64:ff9b::7f00:3'], [403, 'refused_address']],
    ['no address', [], [502, 'failed_dns']],
  ];
  for (const [title, addresses, answer] of rows) {
    it(`D28: answers ${answer[1]} for a name with ${title}`, async () => {
      await start();
      dns.answers = () => addresses;
      expect(await verdictsOf('name.example')).to.deep.equal(answer);
    });
  }

  it('refuses a name with a public and a private address on an open port too', async () => {
    await start({ allow: '', ports: [source.port] });
    dns.answers = () => ['8.8.8.8', closedAddress];
    expect(await verdictsOf('mixed.example')).to.deep.equal([403, 'refused_address']);
  });

  it('asks for a local name only when an exception could open it', async () => {
    await start();
    dns.answers = () => [openAddress];
    expect(await verdictsOf('source')).to.deep.equal([200, 'source']);
    dns.answers = () => ['8.8.8.8'];
    expect(await verdictsOf('source.internal')).to.deep.equal([403, 'refused_name']);
    dns.answers = () => [];
    expect(await verdictsOf('metadata.google.internal')).to.deep.equal([403, 'refused_name']);
    await egress.close();
    await start({ allow: `${openAddress}:1` });
    dns.asked.length = 0;
    expect(await verdictsOf('source')).to.deep.equal([403, 'refused_name']);
    expect(await verdictsOf('name.example')).to.deep.equal([403, 'refused_port']);
    expect(dns.asked).to.deep.equal([]);
  });

  it('takes localhost as the excepted loopback address without asking a resolver', async () => {
    await start({ allow: '127.0.0.1:*' });
    const own = await startSource((_, response) => response.end('own'), '127.0.0.1');
    dns.answers = () => [closedAddress];
    const answer = await ask(egress.address, `http://localhost:${own.port}/`);
    expect([answer.status, answer.body, dns.asked]).to.deep.equal([200, 'own', []]);
    await own.close();
  });

  it('reaches a name at its next address when the first takes no connection', async () => {
    await start({ allow: '127.0.0.0/8:*', deny: closedAddress });
    dns.answers = () => ['127.0.0.9', '127.0.0.8', openAddress];
    expect(await verdictsOf('several.example')).to.deep.equal([200, 'source']);
    dns.answers = () => ['127.0.0.9', '127.0.0.8'];
    expect(await verdictsOf('several.example')).to.deep.equal([502, 'failed_connect']);
  });

  it('answers 504 failed_dns within its time limit when the resolver is silent', async () => {
    await start({ dnsSeconds: 0.2 });
    dns.answers = (name) => (name === '' ? [] : null);
    expect(await verdictsOf('silent.example')).to.deep.equal([504, 'failed_dns']);
    // Both ways ask for two kinds of addresses, and nothing is asked a second time.
    expect(dns.asked.filter((question) => question.endsWith('silent.example'))).to.have.length(4);
  });

  it('answers 502 failed_dns for a name whose own name servers fail, while its resolver answers for the root', async () => {
    await start();
    dns.answers = (name) => (name === '' ? [] : 'failed');
    expect(await verdictsOf('broken.example')).to.deep.equal([502, 'failed_dns']);
  });

  for (const [title, answer] of [
    ['keeps silent', null],
    ['fails', 'failed'],
  ] as const) {
    it(`answers 503 failed_dns while its resolver ${title} for every name: the source was blamed`, async () => {
      await start({ dnsSeconds: 0.2 });
      dns.answers = () => answer;
      expect(await verdictsOf('any.example')).to.deep.equal([503, 'failed_dns']);
      expect(await verdictsOf('no-such-name.invalid'), 'by its standard').to.deep.equal([502, 'failed_dns']);
      dns.answers = (name) => (name === 'any.example' ? [openAddress] : []);
      expect(await verdictsOf('any.example')).to.deep.equal([200, 'source']);
    });
  }

  it('does not use a connection whose peer is not the judged address', async () => {
    // A real connection to the source, whatever address is asked for.
    await start({ allow: '127.0.0.0/8:*', deny: closedAddress, dial: (to) => connect({ ...to, host: openAddress }) });
    dns.answers = () => ['127.0.0.9'];
    expect(await verdictsOf('elsewhere.example')).to.deep.equal([403, 'refused_address']);
    dns.answers = () => [openAddress];
    expect(await verdictsOf('right.example')).to.deep.equal([200, 'source']);
  });

  it('answers 504 failed_connect when a host takes no connection in time', async () => {
    const dialled: Socket[] = [];
    const silent = () => {
      dialled.push(new Socket());
      return dialled.at(-1)!;
    };
    await start({ connectSeconds: 0.1, dial: silent });
    expect(await verdictsOf(openAddress)).to.deep.equal([504, 'failed_connect']);
    expect(dialled.map(({ destroyed }) => destroyed)).to.deep.equal([true, true]);
  });

  it('reaches a host at its last address when the others keep silent', async () => {
    const dial: EgressOptions['dial'] = (to) => (to.host === openAddress ? connect(to) : new Socket());
    await start({ allow: '127.0.0.0/8:*', deny: closedAddress, connectSeconds: 0.9, dial });
    dns.answers = () => ['127.0.0.9', '127.0.0.8', openAddress];
    const startMs = performance.now();
    expect((await ask(egress.address, `http://silent.example:${source.port}/`)).body).to.equal('source');
    expect(performance.now() - startMs, 'two of three parts').to.be.at.least(590);
  });

  it('ends the attempt to connect when its client is disconnected', async () => {
    const dialled = Promise.withResolvers<Socket>();
    const silent = () => {
      const socket = new Socket();
      dialled.resolve(socket);
      return socket;
    };
    await start({ connectSeconds: 60, dial: silent });
    const asked = ask(egress.address, source.url).catch((error) => error.code);
    const socket = await dialled.promise;
    const closed = egress.close();
    await once(socket, 'close');
    expect(await asked).to.equal('ECONNRESET');
    await closed;
  });
});

describe('a resolver', () => {
  const inBoth = () => ['127.0.0.1', '::1', '192.0.2.2', '2001:db8::2', 'fe80::2'];
  const withLimit = (port: number, ownAddresses: () => string[]) =>
    makeResolve({ servers: [{ host: 'localhost', port }], limitSeconds: 60, ownAddresses });

  it('returns both address families in turn, and nothing once the caller has aborted', async () => {
    const dns = await startDns();
    dns.answers = () => ['127.0.0.1', '127.0.0.2', '127.0.0.3', '::1'];
    const resolve = await withLimit(dns.port, inBoth);
    const found = { addresses: ['127.0.0.1', '::1', '127.0.0.2', '127.0.0.3'], late: false };
    expect(await resolve('some.example', present)).to.deep.equal(found);
    dns.answers = () => null;
    const left = new AbortController();
    const waiting = resolve('other.example', left.signal);
    left.abort();
    expect(await waiting).to.deep.equal({ addresses: [], late: true });
    dns.close();
  });

  it('does not wait to the limit for IPv6 where its questions are dropped and IPv4 has addresses', async () => {
    const dns = await startDns();
    const resolve = await withLimit(dns.port, inBoth);
    dns.answers = (_, type) => (type === 'A' ? ['127.0.0.1'] : null);
    try {
      expect((await resolve('some.example', present)).addresses).to.deep.equal(['127.0.0.1']);
      // The one for A is answered; the third and last one for AAAA would be sent after 4.5 s.
      expect(dns.asked.length, String(dns.asked)).to.be.below(4);
    } finally {
      dns.close();
    }
  });

  for (const [lost, machine, own] of [
    ['A', 'of IPv4', ['127.0.0.1', '::1', '192.0.2.2', 'fe80::2']],
    ['A', 'of both families', inBoth()],
    ['AAAA', 'of IPv6', ['127.0.0.1', '::1', '2001:db8::2', 'fe80::2']],
  ] as const)
    it(`asks again for ${lost} on a machine ${machine}: a lost packet cost the download`, async () => {
      const dns = await startDns();
      const isRepeated = () => dns.asked.filter((question) => question.startsWith(`${lost} `)).length > 1;
      dns.answers = (_, type) => (type !== lost || isRepeated() ? ['127.0.0.1', '::1'] : null);
      try {
        const resolve = await withLimit(dns.port, () => [...own]);
        expect((await resolve('some.example', present)).addresses).to.deep.equal(['127.0.0.1', '::1']);
      } finally {
        dns.close();
      }
    });

  it('of the system knows the hosts file of this machine', async () => {
    const resolve = await makeResolve({ servers: [], limitSeconds: 2, ownAddresses: inBoth });
    expect((await resolve('localhost', present)).addresses).to.include('127.0.0.1');
  });
});
