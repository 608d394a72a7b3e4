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

describe('names behind the proxy', () => {
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
    const plain = await ask(egress.place, `http://${name}:${source.port}/`);
    const tunnel = await openTunnel(egress.place, `${name}:${source.port}`);
    tunnel.socket.destroy();
    expect([plain.status, plain.reason === 'OK' ? undefined : plain.reason]).to.deep.equal([
      tunnel.status,
      tunnel.verdict,
    ]);
    return [plain.status, plain.verdict ?? plain.body];
  };

  it('a name is resolved once for a connection, which goes to the address that was judged', async () => {
    await start();
    dns.answers = () => [dns.asked.length <= 2 ? openAddress : closedAddress];
    const first = await ask(egress.place, `http://rebind.example:${source.port}/`);
    expect([first.status, first.body]).to.deep.equal([200, 'source']);
    expect(dns.asked.sort()).to.deep.equal(['A rebind.example', 'AAAA rebind.example']);
    expect(egress.lines[0]).to.include({ host: 'rebind.example', address: openAddress });
    expect(await verdictsOf('rebind.example'), 'the second time').to.deep.equal([403, 'refused_address']);
    expect(dns.asked).to.have.length(6);
  });

  const rows: [title: string, addresses: string[], answer: [number, string]][] = [
    ['an excepted address', [openAddress], [200, 'source']],
    ['an address that is not public', [closedAddress], [403, 'refused_address']],
    ['an excepted one and one that is not public', [openAddress, closedAddress], [403, 'refused_address']],
    ['one that is not public and an excepted one', [closedAddress, openAddress], [403, 'refused_address']],
    ['an excepted one and an IPv6 one that is not public', [openAddress, '::1'], [403, 'refused_address']],
    ['an excepted one and a public one on a port that is not open', [openAddress, '8.8.8.8'], [403, 'refused_port']],
    ['a public one and one that is not', ['8.8.8.8', '10.0.0.1'], [403, 'refused_address']],
    ['an IPv4 one inside IPv6', [`::ffff:${closedAddress}`], [403, 'refused_address']],
    ['an IPv4-compatible one', [`::${openAddress}`], [403, 'refused_address']],
    ['a 6to4 one', ['2002:7f00:3::'], [403, 'refused_address']],
    ['a NAT64 one', ['64:ff9b::7f00:3'], [403, 'refused_address']],
    ['none', [], [502, 'failed_dns']],
  ];
  for (const [title, addresses, answer] of rows) {
    it(`D28: a name with ${title}: ${answer[1]}`, async () => {
      await start();
      dns.answers = () => addresses;
      expect(await verdictsOf('name.example')).to.deep.equal(answer);
    });
  }

  it('a public and a private address refuse a name on an open port too', async () => {
    await start({ allow: '', ports: [source.port] });
    dns.answers = () => ['8.8.8.8', closedAddress];
    expect(await verdictsOf('mixed.example')).to.deep.equal([403, 'refused_address']);
  });

  it('a local name is asked for only where an exception could open it', async () => {
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

  it('localhost is the loopback address that is excepted, whatever a resolver says', async () => {
    await start({ allow: '127.0.0.1:*' });
    const own = await startSource((_, response) => response.end('own'), '127.0.0.1');
    dns.answers = () => [closedAddress];
    const answer = await ask(egress.place, `http://localhost:${own.port}/`);
    expect([answer.status, answer.body, dns.asked]).to.deep.equal([200, 'own', []]);
    await own.close();
  });

  it('a name whose first address takes no connection is reached at its next', async () => {
    await start({ allow: '127.0.0.0/8:*', deny: closedAddress });
    dns.answers = () => ['127.0.0.9', '127.0.0.8', openAddress];
    expect(await verdictsOf('several.example')).to.deep.equal([200, 'source']);
    dns.answers = () => ['127.0.0.9', '127.0.0.8'];
    expect(await verdictsOf('several.example')).to.deep.equal([502, 'failed_connect']);
  });

  it('a resolver that does not answer costs no more than its time', async () => {
    await start({ dnsSeconds: 0.2 });
    dns.answers = () => null;
    const startMs = performance.now();
    expect(await verdictsOf('silent.example')).to.deep.equal([504, 'failed_dns']);
    expect(performance.now() - startMs).to.be.below(1500);
  });

  it('a connection that leads elsewhere than to the judged address is not used', async () => {
    // A real connection to the source, whatever address is asked for.
    await start({ allow: '127.0.0.0/8:*', deny: closedAddress, dial: (to) => connect({ ...to, host: openAddress }) });
    dns.answers = () => ['127.0.0.9'];
    expect(await verdictsOf('elsewhere.example')).to.deep.equal([403, 'refused_address']);
    dns.answers = () => [openAddress];
    expect(await verdictsOf('right.example')).to.deep.equal([200, 'source']);
  });

  it('a host that takes no connection in time is given up', async () => {
    const dialled: Socket[] = [];
    const silent = () => {
      dialled.push(new Socket());
      return dialled.at(-1)!;
    };
    await start({ connectSeconds: 0.1, dial: silent });
    expect(await verdictsOf(openAddress)).to.deep.equal([504, 'failed_connect']);
    expect(dialled.map(({ destroyed }) => destroyed)).to.deep.equal([true, true]);
  });

  it('a host whose first addresses keep silent is reached at its last', async () => {
    const dial: EgressOptions['dial'] = (to) => (to.host === openAddress ? connect(to) : new Socket());
    await start({ allow: '127.0.0.0/8:*', deny: closedAddress, connectSeconds: 0.9, dial });
    dns.answers = () => ['127.0.0.9', '127.0.0.8', openAddress];
    const startMs = performance.now();
    expect((await ask(egress.place, `http://silent.example:${source.port}/`)).body).to.equal('source');
    expect(performance.now() - startMs, 'two of three parts').to.be.within(590, 890);
  });

  it('a client that goes away ends the attempt', async () => {
    const dialled = Promise.withResolvers<Socket>();
    const silent = () => {
      const socket = new Socket();
      dialled.resolve(socket);
      return socket;
    };
    await start({ connectSeconds: 60, dial: silent });
    const asked = ask(egress.place, source.url).catch((error) => error.code);
    const socket = await dialled.promise;
    const closed = egress.close();
    await once(socket, 'close');
    expect(await asked).to.equal('ECONNRESET');
    await closed;
  });
});

describe('the resolvers', () => {
  it('give both families in turn, and nothing once nobody waits', async () => {
    const dns = await startDns();
    dns.answers = () => ['127.0.0.1', '127.0.0.2', '127.0.0.3', '::1'];
    const resolve = await makeResolve({ servers: [{ host: 'localhost', port: dns.port }], limitSeconds: 60 });
    const found = { addresses: ['127.0.0.1', '::1', '127.0.0.2', '127.0.0.3'], late: false };
    expect(await resolve('some.example', present)).to.deep.equal(found);
    dns.answers = () => null;
    const left = new AbortController();
    const waiting = resolve('other.example', left.signal);
    left.abort();
    expect(await waiting).to.deep.equal({ addresses: [], late: true });
    dns.close();
  });

  it('of the system know what is written on this machine', async () => {
    const resolve = await makeResolve({ servers: [], limitSeconds: 2 });
    expect((await resolve('localhost', present)).addresses).to.include('127.0.0.1');
  });
});
