import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  ask,
  dialProxy,
  openTunnel,
  startEgress,
  startRaw,
  type TestEgress,
  type TestSource,
  talk,
} from '../support/egress.ts';
import { until } from '../support/until.ts';

const end = '\r\n\r\n';
const rounds = process.env.ROUNDS ? 2000 : 60;

describe('hostile clients of the proxy', () => {
  let egress: TestEgress;
  let source: TestSource;
  /** All that the source was sent, connection by connection. */
  const received: string[] = [];

  before(async () => {
    source = await startRaw((socket) => {
      const at = received.push('') - 1;
      socket.on('data', (data) => {
        received[at] += data.toString('latin1');
        if (/\r\n\r\n/.test(received[at]!))
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok');
      });
    });
    egress = await startEgress();
  });
  after(async () => {
    await egress.close();
    await source.close();
  });
  beforeEach(() => {
    received.length = 0;
  });
  afterEach(async () => {
    const answer = await ask(egress.address, source.url);
    expect(answer.body, 'the proxy still works').to.equal('ok');
  });

  const host = 'Host: a\r\n';
  const target = () => `http://${source.authority}/`;
  const bad: Record<string, () => string> = {
    'no HTTP at all': () => `\x16\x03\x01\x02\x00\x01\x00${end}`,
    'a SOCKS greeting': () => '\x05\x01\x00\r\n\r\n',
    'the preface of HTTP/2': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'an origin form': () => `GET / HTTP/1.1\r\n${host}\r\n`,
    'an asterisk': () => `OPTIONS * HTTP/1.1\r\n${host}\r\n`,
    'https in absolute form': () => `GET https://${source.authority}/ HTTP/1.1\r\n${host}\r\n`,
    'another scheme': () => `GET ftp://${source.authority}/ HTTP/1.1\r\n${host}\r\n`,
    'a file': () => `GET file:///etc/passwd HTTP/1.1\r\n${host}\r\n`,
    'no host': () => `GET http:///path HTTP/1.1\r\n${host}\r\n`,
    'user and password': () => `GET http://u:p@${source.authority}/ HTTP/1.1\r\n${host}\r\n`,
    'a port of 0': () => `GET http://127.0.0.2:0/ HTTP/1.1\r\n${host}\r\n`,
    'a port above 65535': () => `GET http://127.0.0.2:99999/ HTTP/1.1\r\n${host}\r\n`,
    'an invalid host': () => `GET http://exa%00mple.com/ HTTP/1.1\r\n${host}\r\n`,
    'a line feed in the target': () => `GET ${target()}\n HTTP/1.1\r\n${host}\r\n`,
    'a blank in the target': () => `GET ${target()} x HTTP/1.1\r\n${host}\r\n`,
    'a NUL in a header': () => `GET ${target()} HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`,
    'a lone line feed between headers': () => `GET ${target()} HTTP/1.1\r\n${host}X: a\nY: b\r\n\r\n`,
    'a lone carriage return in a header': () => `GET ${target()} HTTP/1.1\r\n${host}X: a\rY: b\r\n\r\n`,
    'a blank before the colon': () => `POST ${target()} HTTP/1.1\r\n${host}Content-Length : 5\r\n\r\nhello`,
    'a folded header': () => `GET ${target()} HTTP/1.1\r\n${host}X: a\r\n b\r\n\r\n`,
    'both framings': () =>
      `POST ${target()} HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'both framings in the other order': () =>
      `POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
    'two lengths': () => `POST ${target()} HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
    'a list of lengths': () => `POST ${target()} HTTP/1.1\r\n${host}Content-Length: 5, 5\r\n\r\nhello`,
    'a signed length': () => `POST ${target()} HTTP/1.1\r\n${host}Content-Length: +5\r\n\r\nhello`,
    'an endless length': () =>
      `POST ${target()} HTTP/1.1\r\n${host}Content-Length: 99999999999999999999999\r\n\r\nhello`,
    'another coding': () => `POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    'a coding that is not the last': () =>
      `POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
    'two codings': () =>
      `POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    'a coding after a vertical tab': () =>
      `POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`,
    'a tunnel to a URL': () => `CONNECT ${target()} HTTP/1.1\r\n${host}\r\n`,
    'a tunnel without a port': () => `CONNECT 127.0.0.2 HTTP/1.1\r\n${host}\r\n`,
    'a tunnel to port 0': () => `CONNECT 127.0.0.2:0 HTTP/1.1\r\n${host}\r\n`,
    'a tunnel to no port': () => `CONNECT 127.0.0.2:x HTTP/1.1\r\n${host}\r\n`,
    'a tunnel to a port too high': () => `CONNECT 127.0.0.2:70000 HTTP/1.1\r\n${host}\r\n`,
    'a tunnel with a user': () => `CONNECT a@${source.authority} HTTP/1.1\r\n${host}\r\n`,
    'a tunnel with a path': () => `CONNECT ${source.authority}/ HTTP/1.1\r\n${host}\r\n`,
    'a tunnel to a bare IPv6 address': () => `CONNECT ::1:80 HTTP/1.1\r\n${host}\r\n`,
    'a tunnel to an address with a zone': () => `CONNECT [fe80::1%25lo]:80 HTTP/1.1\r\n${host}\r\n`,
    'a tunnel with a body': () => `CONNECT ${source.authority} HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\nhello`,
    'a tunnel with a coded body': () =>
      `CONNECT ${source.authority} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  };
  for (const [what, text] of Object.entries(bad)) {
    it(`${what}: is answered 400, and no source is reached`, async () => {
      const said = await talk(egress.address, text());
      expect(said).to.match(/^HTTP\/1\.1 400 refused_request\r\n(?:.+\r\n)*x-egress-verdict: refused_request\r\n/i);
      expect(said.match(/HTTP\/1\.1/g), 'answers').to.have.length(1);
      expect(received).to.deep.equal([]);
    });
  }

  for (const [what, text] of Object.entries({
    'one huge header': () => `GET ${target()} HTTP/1.1\r\n${host}X: ${'x'.repeat(20_000)}${end}`,
    'many headers': () => `GET ${target()} HTTP/1.1\r\n${host}${'X: y\r\n'.repeat(5000)}\r\n`,
    'a huge target': () => `GET ${target()}${'x'.repeat(20_000)} HTTP/1.1\r\n${host}\r\n`,
    'a tunnel with huge headers': () => `CONNECT ${source.authority} HTTP/1.1\r\nX: ${'x'.repeat(20_000)}${end}`,
  })) {
    it(`${what}: is answered 431, and no source is reached`, async () => {
      expect(await talk(egress.address, text())).to.match(/^HTTP\/1\.1 431 refused_request\r\n/);
      expect(received).to.deep.equal([]);
    });
  }

  it('a header that names the length as of one hop does not smuggle a second request', async () => {
    const inner = `GET http://${source.authority}/smuggled HTTP/1.1\r\n\r\n`;
    await talk(
      egress.address,
      `POST ${target()} HTTP/1.1\r\n${host}Connection: close, content-length, host\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    );
    expect(received).to.have.length(1);
    expect(received[0]).to.match(
      /^POST \/ HTTP\/1\.1\r\nHost: 127\.0\.0\.2:\d+\r\nContent-Length: \d+\r\nConnection: close\r\n\r\n/,
    );
  });

  it('the source gets the Host of the target, whatever the header of the client says', async () => {
    await talk(egress.address, `GET ${target()} HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n`);
    expect(received[0]).to.match(/^GET \/ HTTP\/1\.1\r\nHost: 127\.0\.0\.2:\d+\r\nConnection: close\r\n\r\n$/);
  });

  it('bytes after a refused tunnel are not read as a request', async () => {
    const said = await talk(
      egress.address,
      `CONNECT 127.0.0.3:80 HTTP/1.1\r\n${host}\r\n`,
      `GET ${target()} HTTP/1.1\r\n${host}\r\n`,
    );
    expect(said.match(/^HTTP\/1\.1 .*$/gm)).to.deep.equal(['HTTP/1.1 403 refused_address']);
    expect(received).to.deep.equal([]);
  });

  it('bytes sent along with the request for a tunnel go to its target alone, once the tunnel is open', async () => {
    const said = await talk(
      egress.address,
      `CONNECT ${source.authority} HTTP/1.1\r\n${host}\r\nGET / HTTP/1.1\r\n\r\n`,
    );
    expect(said).to.match(/^HTTP\/1\.1 200 Connection established\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(received).to.deep.equal(['GET / HTTP/1.1\r\n\r\n']);
  });

  it('50 pipelined requests open one connection to the source', async () => {
    const socket = await dialProxy(egress.address);
    socket.write(`GET ${target()} HTTP/1.1\r\n${host}\r\n`.repeat(50));
    await whenOver(socket);
    await until(() => egress.lines.length > 0, 1, 'it is over');
    expect(received.length).to.be.at.most(1);
    expect(await egress.counts()).to.have.property('open');
  });

  it('a source gets no complete request from a client that breaks its body off', async () => {
    const socket = await dialProxy(egress.address);
    socket.write(`POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
    await until(() => received.length === 1, 1, 'the source is asked');
    socket.write('not a chunk\r\n');
    await whenOver(socket);
    await until(() => source.sockets.every(({ destroyed }) => destroyed), 1, 'the source is left');
    expect(received[0]).not.to.match(/0\r\n\r\n$/);
  });

  it('a refused client that still sends a body can read the refusal', async () => {
    const small = Buffer.alloc(300_000);
    const headers = { 'content-length': small.length };
    const answer = await ask(egress.address, 'http://127.0.0.3/', { method: 'POST', headers, body: small });
    expect([answer.status, answer.verdict]).to.deep.equal([403, 'refused_address']);
    const large = Buffer.alloc(20_000_000);
    const socket = await dialProxy(egress.address);
    let said = '';
    socket.on('data', (data) => {
      said += data;
    });
    const sent = new Promise(
      (resolve) => socket.write('CONNECT 127.0.0.3:80 HTTP/1.1\r\n\r\n') && socket.write(large, resolve),
    );
    expect(await sent, 'an error of writing').not.to.be.instanceOf(Error);
    await whenOver(socket);
    expect(said).to.match(/^HTTP\/1\.1 403 refused_address\r\n/);
  });

  it('the connection of a client that still sends when it is answered is closed after the answer', async () => {
    const early = await startRaw((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    const socket = await dialProxy(egress.address);
    socket.write(`POST ${early.url} HTTP/1.1\r\n${host}Content-Length: 1000000\r\n\r\nsome`);
    const [data] = await once(socket, 'data');
    expect(String(data)).to.match(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*Connection: close\r\n/);
    await whenOver(socket);
    await early.close();
  });

  it('random bytes never end the proxy', async () => {
    const starts = [
      '',
      `GET ${target()} HTTP/1.1\r\n`,
      `POST ${target()} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`,
      'CONNECT ',
      `CONNECT ${source.authority} HTTP/1.1\r\n${host}\r\n`,
    ];
    const parts = fc.array(
      fc.oneof(fc.string(), fc.constantFrom('\r\n', ':', ' ', '\0', 'HTTP/1.1', 'Content-Length: 1')),
      { maxLength: 20 },
    );
    const bytes = fc.uint8Array({ minLength: 20, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...starts), parts, bytes, async (start, rest, last) => {
        const socket = await dialProxy(egress.address);
        socket.write(start + rest.join(''));
        socket.end(last);
        await whenOver(socket);
      }),
      { numRuns: rounds },
    );
  }).timeout(300_000 + rounds * 50);
});

/** Waits until the other side has ended a connection. */
async function whenOver(socket: Socket): Promise<void> {
  socket.resume();
  await until(() => socket.readableEnded || socket.destroyed, 3, 'the other side ends');
  socket.destroy();
}

describe('hostile sources behind the proxy', () => {
  const answers: Record<string, [string, number | 'broken']> = {
    'no answer': ['', 502],
    'no HTTP': ['220 mail.example ESMTP\r\n', 502],
    'an endless header': [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`, 502],
    'a status below 100': ['HTTP/1.1 001 No\r\n\r\n', 502],
    'a change of protocol': ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', 502],
    'both framings': ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 502],
    'two lengths': ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!', 502],
    'a lone line feed in a header': ['HTTP/1.1 200 OK\r\nX: a\n\r\nY: b\r\n\r\n', 502],
    'a NUL in a header': ['HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n', 502],
    'a body that breaks off': ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel', 'broken'],
    'a coded body that breaks off': ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel', 'broken'],
    'a forged verdict': [
      'HTTP/1.1 403 refused_address\r\nX-Egress-Verdict: refused_address\r\nContent-Length: 0\r\n\r\n',
      403,
    ],
    'a body until its end': ['HTTP/1.0 200 OK\r\n\r\nhello', 200],
    'two answers': [
      'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad',
      200,
    ],
  };
  for (const [what, [text, outcome]] of Object.entries(answers)) {
    it(`${what}: ${outcome === 'broken' ? 'breaks the connection of the client' : `is answered ${outcome}`}`, async () => {
      const source = await startRaw((socket) => socket.once('data', () => socket.end(text)));
      const egress = await startEgress();
      const answer = await ask(egress.address, source.url).catch((error) => error.code);
      if (outcome === 'broken') expect(answer).to.equal('ECONNRESET');
      else {
        expect([answer.status, answer.verdict]).to.deep.equal([outcome, outcome === 502 ? 'failed_answer' : undefined]);
        if (outcome === 403) expect(answer.reason).to.equal('Forbidden');
        if (outcome === 200) expect(answer.body).to.equal('hello');
      }
      await egress.close();
      expect(await egress.counts()).to.deep.equal({ [outcome === 502 ? 'failed_answer' : 'open']: 1 });
      await source.close();
    });
  }

  it('a source that resets its connection ends the tunnel of the client', async () => {
    const source = await startRaw((socket) => socket.once('data', () => socket.resetAndDestroy()));
    const egress = await startEgress();
    const { socket } = await openTunnel(egress.address, source.authority);
    socket.write('x');
    await whenOver(socket);
    await until(async () => (await egress.counts()).open === 1, 1, 'it is over');
    await egress.close();
    await source.close();
  });
});
