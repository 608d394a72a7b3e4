import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import { sendRequest } from '../../src/base/http-client.ts';
import { findListenError } from '../../src/base/reach-server.ts';
import type { ServerAddress } from '../../src/base/server-address.ts';
import { makeHttpServer } from '../../src/base/server-certificate.ts';
import { askInspector } from '../../src/roles/inspector-client.ts';
import { startEgressForwarder } from '../../src/worker/egress-forwarder.ts';
import { serveInspector } from '../../src/worker/inspector-server.ts';
import { makeAuthority } from '../support/certificate.ts';
import { ask, openTunnel, startEgress, startSource, type TestEgress, type TestSource } from '../support/egress.ts';
import { aLog } from '../support/redis.ts';
import { makeTlsFiles, type TlsFiles } from '../support/tls-files.ts';
import { until } from '../support/until.ts';

const host = '127.0.0.1';
const signal = new AbortController().signal;

describe('TLS between the parts', () => {
  let files: TlsFiles;
  let source: TestSource;
  let egress: TestEgress;
  let port: number;
  beforeEach(async () => {
    files = makeTlsFiles('first', [host]);
    source = await startSource((_, response) => response.end('source'));
    egress = await startEgress({ certificate: files, limits: { connectionsPerClient: 8 } });
    port = 'port' in egress.address ? egress.address.port : 0;
  });
  afterEach(async () => {
    await egress.close();
    await source.close();
    files.remove();
  });
  const proxyOf = (caFile: string | null = files.caFile) => ({ host, port, tls: { caFile } });
  const fetchSource = (proxy = proxyOf()) =>
    sendRequest({ to: new URL(source.url), proxy, method: 'GET', signal, maxAnswerBytes: 100 });
  const issuer = async () => {
    const socket = connectTls({ host, port, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const name = socket.getPeerCertificate().issuer.CN;
    socket.destroy();
    return name;
  };

  it('carries requests and tunnels, also half-closed ones, to egress, directly and through the forwarder of a worker', async () => {
    expect((await fetchSource()).text).to.equal('source');
    const forwarder = await startEgressForwarder({ to: proxyOf(), folder: null, ports: 1, maxConnections: 128 });
    const near = { host, port: forwarder.ports[0] as number };
    expect((await ask(near, source.url)).body).to.equal('source');
    const { status, socket } = await openTunnel(near, source.authority);
    expect(status).to.equal(200);
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes;
    });
    // One direction of the tunnel ends before the other.
    socket.end('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    await once(socket, 'close');
    expect(text).to.match(/^HTTP\/1.1 200 .*source/s);
    await forwarder.close();
  });

  it('refuses a server that speaks no TLS, another authority, and a certificate for another host', async () => {
    const stranger = makeTlsFiles('stranger', [host]);
    const other = makeTlsFiles('other', ['egress.media.svc']);
    try {
      await expectRejected(ask(egress.address, source.url), 'ECONNRESET');
      await expectRejected(fetchSource(proxyOf(stranger.caFile)), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
      await expectRejected(fetchSource(proxyOf(null)), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
      other.trust(files.authority);
      files.write(files.authority.issue({ name: 'other', hosts: ['egress.media.svc'] }));
      await until(
        async () => (await fetchSource().catch((error) => error.code)) === 'ERR_TLS_CERT_ALTNAME_INVALID',
        5,
        'the other name',
      );
    } finally {
      stranger.remove();
      other.remove();
    }
  });

  it('is checked by the authorities of a request, too, directly and in a tunnel through egress', async () => {
    const authority = makeAuthority('private');
    const server = createServer(authority.issue({ name: 'store', hosts: [host] }), (_, res) => res.end('store'));
    await once(server.listen(0, host), 'listening');
    const to = new URL(`https://${host}:${(server.address() as AddressInfo).port}`);
    const open = await startEgress({ allow: `${host}:*` });
    const fetchStore = (proxy: ServerAddress | null, authorities: readonly string[]) =>
      sendRequest({ to, proxy, authorities, method: 'GET', signal, maxAnswerBytes: 100 });
    try {
      for (const proxy of [null, open.address]) {
        expect((await fetchStore(proxy, [authority.cert])).text).to.equal('store');
        await expectRejected(fetchStore(proxy, []), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
        await expectRejected(fetchStore(proxy, [makeAuthority('b').cert]), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
      }
    } finally {
      await open.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('serves a new certificate to new connections while requests run, and none of them fails', async () => {
    const second = makeAuthority('second');
    let [done, stopped] = [0, false];
    const failures: unknown[] = [];
    const loops = Array.from({ length: 6 }, async () => {
      while (!stopped) {
        const answer = await fetchSource().catch((error: unknown) => failures.push(error));
        if (typeof answer === 'object' && answer.text === 'source') done++;
      }
    });
    const more = async (count: number) => {
      const from = done;
      await until(() => done >= from + count || failures.length > 0, 10, `${count} more requests`);
    };
    await more(20);
    files.trust(files.authority, second);
    const { cert, key } = second.issue({ name: host, hosts: [host] });
    files.write({ cert });
    // The key of the first certificate does not fit: the first pair stays until both are there.
    await until(() => egress.lines.some(({ level }) => level === 'warn'), 5, 'a warning');
    expect(await issuer()).to.equal('first');
    await more(20);
    files.write({ key });
    await until(async () => (await issuer()) === 'second', 5, 'the second certificate');
    files.trust(second);
    await more(20);
    stopped = true;
    await Promise.all(loops);
    expect(failures).to.deep.equal([]);
  });

  it('keeps its certificate when the files have gone, and warns once', async () => {
    rmSync(files.keyFile);
    await until(() => egress.lines.some(({ level }) => level === 'warn'), 5, 'a warning');
    expect((await fetchSource()).text).to.equal('source');
    await until(() => egress.lines.length > 0, 1, 'its log');
    expect(egress.lines.filter(({ level }) => level === 'warn')).to.have.length(1);
  });

  it('bounds the connections of a client that finishes no handshake, and forgets those that ended', async () => {
    const sockets = Array.from({ length: 20 }, () => connect(port, host).on('error', () => undefined));
    const isOpen = ({ destroyed }: Socket) => !destroyed;
    for (const socket of sockets) socket.resume();
    await until(() => sockets.filter(isOpen).length === 8, 5, 'all but 8 are closed');
    await expectRejected(fetchSource(), 'ECONNRESET');
    for (const socket of sockets) socket.destroy();
    await until(
      () =>
        fetchSource().then(
          () => true,
          () => false,
        ),
      5,
      'a request gets through again',
    );
  });

  it('forgets a client that leaves within the handshake, whose connection stayed until the handshake timed out', async () => {
    const server = makeHttpServer({ files, log: aLog().log }, {});
    await once(server.listen(0, host), 'listening');
    connect((server.address() as AddressInfo).port, host).end();
    const [error] = await once(server, 'tlsClientError');
    expect(error.code).to.equal('ECONNRESET');
    await new Promise((resolve) => server.close(resolve));
  });

  it('carries the questions to the inspector, which is away for clients that do not trust it', async () => {
    const stranger = makeTlsFiles('stranger', [host]);
    const found = { failure: { code: 'unclassified', text: 'It is gone.' } } as const;
    const inspect = () => Promise.resolve(found);
    const server = await serveInspector({ inspect, list: inspect }, { host, port: 0 }, { files, log: aLog().log });
    try {
      const at = (caFile: string) => ({ host, port: server.port, tls: { caFile } });
      const asking = (caFile: string) => askInspector(at(caFile)).inspect('https://a.example/', 'a', signal);
      expect(await asking(files.caFile)).to.deep.equal(found);
      await expectRejected(asking(stranger.caFile), 'unavailable');
      expect(await findListenError(at(files.caFile))).to.equal(null);
      expect((await findListenError(at(stranger.caFile)))?.message).to.match(/unable to verify/);
      expect((await findListenError(at('/nowhere')))?.message).to.match(/ENOENT/);
    } finally {
      await server.close(0);
      stranger.remove();
    }
  });

  it('does not start with files that hold no certificate with its key', () => {
    files.write({ key: makeAuthority('else').issue({ name: host }).key });
    expect(() => makeHttpServer({ files, log: aLog().log }, {})).to.throw(/hold no certificate with its key: /);
  });
});

async function expectRejected(asked: Promise<unknown>, code: string): Promise<void> {
  const found = await asked.then(
    () => 'an answer',
    (error: NodeJS.ErrnoException) => error.code ?? String(error),
  );
  expect(found).to.equal(code);
}
