import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import {
  ask,
  closedAddress,
  openTunnel,
  startEgress,
  startSource,
  type TestEgress,
  type TestSource,
} from '../support/egress.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

/** Fails if anybody reaches it. */
async function startCanary(port = 0) {
  const hits: string[] = [];
  const source = await startSource(
    (request, response) => {
      hits.push(request.url ?? '');
      response.end('secret');
    },
    closedAddress,
    port,
  );
  return { ...source, hits: () => [...hits, ...source.sockets.map(() => 'connection')] };
}

describe('the proxy', () => {
  let source: TestSource;
  let canary: Awaited<ReturnType<typeof startCanary>>;
  let egress: TestEgress;
  const { folder, remove } = aFolder();
  const seen: { method: string; url: string; headers: string[]; body: string }[] = [];

  before(async () => {
    source = await startSource(async (request, response) => {
      const { method = '', url = '', rawHeaders } = request;
      seen.push({ method, url, headers: rawHeaders, body: String(await buffer(request)) });
      if (url === '/redirect') response.writeHead(302, { location: canary.url }).end();
      if (response.headersSent) return;
      response.setHeader('x-egress-verdict', 'refused_address');
      response.setHeader('proxy-authenticate', 'Basic');
      response.setHeader('x-source', 'yes');
      response.end(`answer to ${url}`);
    });
    canary = await startCanary();
  });
  after(async () => {
    await source.close();
    await canary.close();
    remove();
  });
  beforeEach(async () => {
    seen.length = 0;
    egress = await startEgress();
  });
  afterEach(async () => {
    await egress.close();
    expect(canary.hits(), 'the canary').to.deep.equal([]);
  });

  it('forwards a plain request without the headers that are for the proxy alone', async () => {
    const headers = {
      'Proxy-Authorization': 'Basic x',
      'Proxy-Connection': 'keep-alive',
      'X-Hop': 'a',
      Connection: 'close, x-hop',
      'X-Own': 'b',
      TE: 'trailers',
      'x-egress-verdict': 'open',
      Upgrade: 'websocket',
    };
    const {
      status,
      verdict,
      body,
      headers: answered,
    } = await ask(egress.address, `${source.url}a/../b?c=%20d`, { headers });
    expect([status, verdict, body]).to.deep.equal([200, undefined, 'answer to /b?c=%20d']);
    expect(answered).to.include({ 'x-source': 'yes' }).and.not.to.have.property('proxy-authenticate');
    expect(seen).to.deep.equal([
      {
        method: 'GET',
        url: '/b?c=%20d',
        headers: ['Host', source.authority, 'X-Own', 'b', 'Connection', 'close'],
        body: '',
      },
    ]);
  });

  for (const body of ['', 'a text', 'x'.repeat(300_000)]) {
    for (const framing of ['content-length', 'transfer-encoding']) {
      it(`forwards a body of ${body.length} bytes with ${framing}`, async () => {
        const headers = framing === 'content-length' ? { [framing]: body.length } : { [framing]: 'chunked' };
        const answer = await ask(egress.address, source.url, { method: 'POST', headers, body });
        expect(answer.status).to.equal(200);
        expect(seen.map(({ method, body }) => [method, body])).to.deep.equal([['POST', body]]);
        expect(seen[0]?.headers.map((name) => name.toLowerCase())).to.include(framing);
      });
    }
  }

  it('frames a POST without a body as empty', async () => {
    await ask(egress.address, source.url, { method: 'POST' });
    expect(seen[0]?.headers).to.include.members(['Content-Length', '0']);
  });

  it('answers HEAD without a body', async () => {
    const answer = await ask(egress.address, source.url, { method: 'HEAD' });
    expect([answer.status, answer.body, answer.headers['x-source']]).to.deep.equal([200, '', 'yes']);
  });

  it('opens a tunnel through which bytes go both ways as they are', async () => {
    const { status, verdict, socket } = await openTunnel(egress.address, source.authority, {
      'Proxy-Authorization': 'Basic x',
    });
    expect([status, verdict]).to.deep.equal([200, undefined]);
    socket.end('GET /tunnel HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n');
    expect(String(await buffer(socket))).to.match(/^HTTP\/1\.1 200 OK\r\n.*answer to \/tunnel/s);
    expect(seen.map(({ url, headers }) => [url, ...headers])).to.deep.equal([
      ['/tunnel', 'Host', 'other', 'Connection', 'close'],
    ]);
  });

  it('forwards and tunnels through a UNIX socket, and removes the socket at the end', async () => {
    const path = join(folder, 'egress.sock');
    const here = await startEgress({ address: { path } });
    expect((await ask(here.address, `${source.url}x`)).body).to.equal('answer to /x');
    const { status, socket } = await openTunnel(here.address, source.authority);
    expect(status).to.equal(200);
    socket.destroy();
    expect((await ask(here.address, canary.url)).verdict).to.equal('refused_address');
    await here.close();
    expect(existsSync(path)).to.equal(false);
  });

  it('D90: refuses plain requests and tunnels alike, with the verdict in header and reason', async () => {
    const { port } = canary;
    const rows = [
      [`${closedAddress}:${port}`, 'refused_address'],
      [`localhost:${port}`, 'refused_name'],
      ['metadata.google.internal:80', 'refused_name'],
      ['169.254.169.254:80', 'refused_address'],
      [`[::ffff:7f00:3]:${port}`, 'refused_address'],
      [`2130706435:${port}`, 'refused_address'],
      [`0x7f.3:${port}`, 'refused_address'],
      ['8.8.8.8:22', 'refused_port'],
    ] as const;
    for (const [authority, verdict] of rows) {
      const plain = await ask(egress.address, `http://${authority}/path?query`);
      expect([plain.status, plain.reason, plain.verdict], authority).to.deep.equal([403, verdict, verdict]);
      const tunnel = await openTunnel(egress.address, authority);
      expect([tunnel.status, tunnel.reason, tunnel.verdict], authority).to.deep.equal([403, verdict, verdict]);
      tunnel.socket.destroy();
    }
  });

  it('follows no redirect, and refuses the client that follows it to an address that is not public', async () => {
    const redirect = await ask(egress.address, `${source.url}redirect`);
    expect([redirect.status, redirect.headers.location]).to.deep.equal([302, canary.url]);
    const followed = await ask(egress.address, redirect.headers.location!);
    expect([followed.status, followed.verdict]).to.deep.equal([403, 'refused_address']);
  });

  it('opens a connection of its own for every request, also when the client keeps its own', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    const before = source.sockets.length;
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on('warning', warn);
    // More than the listeners that one connection may have without a warning.
    const names = [...'abcdefghijkl'];
    for (const name of names) {
      const asked = request({ ...egress.address, path: source.url + name, headers: { host: 'a' }, agent }).end();
      const [answer] = await once(asked, 'response');
      expect(String(await buffer(answer))).to.equal(`answer to /${name}`);
      sockets.add(asked.socket);
    }
    agent.destroy();
    process.off('warning', warn);
    expect(warnings).to.deep.equal([]);
    expect([sockets.size, source.sockets.length - before]).to.deep.equal([1, names.length]);
    await until(
      () => source.sockets.every(({ destroyed }) => destroyed),
      2,
      'the connections to the source are closed',
    );
  });

  it('counts every connection once by its verdict, and logs no path', async () => {
    await ask(egress.address, `${source.url}secret-path?secret-query`, { headers: { cookie: 'secret-cookie' } });
    await ask(egress.address, `${canary.url}secret-path?secret-query`);
    const { socket } = await openTunnel(egress.address, source.authority);
    socket.destroy();
    await until(() => egress.lines.length === 3, 2, 'three lines');
    expect(await egress.counts()).to.deep.equal({ open: 2, refused_address: 1 });
    const said = egress.lines.map(({ verdict, host, port, client, address }) => ({
      verdict,
      host,
      port,
      client,
      address,
    }));
    const open = { verdict: 'open', host: '127.0.0.2', port: source.port, client: '127.0.0.1', address: '127.0.0.2' };
    const refused = {
      verdict: 'refused_address',
      host: closedAddress,
      port: canary.port,
      client: '127.0.0.1',
      address: undefined,
    };
    expect(said).to.deep.equal([open, refused, open]);
    expect(egress.lines[0]?.bytes).to.be.greaterThan(100);
    expect(JSON.stringify(egress.lines)).not.to.contain('secret');
  });

  it('answers 502 failed_connect when nothing listens at the target', async () => {
    const gone = await startSource(() => undefined);
    await gone.close();
    const plain = await ask(egress.address, gone.url);
    expect([plain.status, plain.verdict]).to.deep.equal([502, 'failed_connect']);
    const tunnel = await openTunnel(egress.address, gone.authority);
    expect([tunnel.status, tunnel.verdict]).to.deep.equal([502, 'failed_connect']);
    tunnel.socket.destroy();
  });

  it('lets an open tunnel end before it closes, and accepts no connection meanwhile', async () => {
    const { socket } = await openTunnel(egress.address, source.authority);
    const closed = egress.close(5);
    const late = await ask(egress.address, source.url).catch((error) => error.code);
    expect(late).to.equal('ECONNREFUSED');
    socket.end('GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(String(await buffer(socket))).to.contain('answer to /last');
    await closed;
  });

  for (const part of ['', 'an ']) {
    it(`serves no further request on a kept connection after the answer that ${part ? 'is under way' : 'is awaited'} when it closes`, async () => {
      const asked: ServerResponse[] = [];
      const slow = await startSource((_, response) => void asked.push(response));
      // Without a connection that stays busy the drain would end with the answer.
      const { socket: tunnel } = await openTunnel(egress.address, source.authority);
      const client = connect(egress.address as { host: string; port: number }).on('error', () => undefined);
      let answered = '';
      client.on('data', (chunk) => {
        answered += chunk;
      });
      const say = () => client.write(`GET ${slow.url} HTTP/1.1\r\nHost: ${slow.authority}\r\n\r\n`);
      say();
      await until(() => asked.length === 1, 5, 'the source is asked');
      asked[0]!.writeHead(200, { 'content-length': 9 });
      if (part) asked[0]!.write(part);
      if (part) await until(() => answered.endsWith(part), 5, 'the answer is under way');
      const closed = egress.close(60);
      asked[0]!.end('an answer'.slice(part.length));
      await until(() => answered.endsWith('an answer'), 5, 'the answer is whole');
      say();
      await until(() => client.closed || asked.length > 1, 5, 'the connection is closed');
      expect(asked).to.have.length(1);
      expect(/^connection: (.*)$/im.exec(answered)?.[1]).to.equal(part ? 'keep-alive' : 'close');
      tunnel.destroy();
      await closed;
      await slow.close();
    });
  }
});
