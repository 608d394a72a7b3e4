import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, createServer as createMute } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { expect } from 'chai';
import type { ServerAddress } from '../../src/base/server-address.ts';
import { sendWebhook } from '../../src/webhooks/send-webhook.ts';
import { makeCertificate } from '../support/certificate.ts';
import { closedAddress, startEgress, startSource } from '../support/egress.ts';
import { type ReceiverProxy, startReceiverProxy } from '../support/receiver-proxy.ts';
import { aFolder } from '../support/redis.ts';
import { startSilentPort } from '../support/silent-port.ts';
import { makeTlsFiles, type TlsFiles } from '../support/tls-files.ts';
import { until } from '../support/until.ts';

const forever = new AbortController().signal;

describe('a post through the proxy', () => {
  let forwarder: ReceiverProxy;
  const post = (url: string, limitMilliseconds = 60_000, stop = forever, proxy = forwarder.address) =>
    sendWebhook(proxy, { url, headers: { authorization: 'a secret' }, body: '{"a":"ü"}' }, limitMilliseconds, stop);
  before(async () => {
    forwarder = await startReceiverProxy();
  });
  after(() => forwarder.close());

  it('events-1: brings body, headers, path and host of a plain URL to its receiver', async () => {
    forwarder.answer('one.test', 204);
    expect(await post('http://one.test:8080/a/b?c=1')).to.deep.equal({ is: 'answered', status: 204 });
    const [{ path, headers, body } = { path: '', headers: {}, body: '' }] = forwarder.of('one.test');
    expect([path, body]).to.deep.equal(['/a/b?c=1', '{"a":"ü"}']);
    const framing = { 'content-length': '10', connection: 'close', authorization: 'a secret' };
    expect(headers).to.deep.equal({ host: 'one.test:8080', ...framing });
  });

  it('goes through a proxy on a socket as well', async () => {
    const { folder, remove } = aFolder();
    const other = await startReceiverProxy(join(folder, 'proxy.sock'));
    other.answer('one.test', 200);
    expect(await post('http://one.test/', 60_000, forever, other.address)).to.deep.equal({
      is: 'answered',
      status: 200,
    });
    await other.close();
    remove();
  });

  for (const scheme of ['http', 'https']) {
    for (const [verdict, status, is] of [
      ['refused_address', 403, 'refused'],
      ['refused_port', 403, 'refused'],
      ['refused_request', 400, 'failed'],
      ['limited', 503, 'failed'],
      ['failed_connect', 502, 'failed'],
      ['failed_connect', 504, 'hung'],
    ] as const) {
      it(`${is} when the proxy says ${verdict} (${status}) about an ${scheme} URL`, async () => {
        forwarder.judge('judged.test', verdict, status);
        expect(await post(`${scheme}://judged.test/`)).to.deep.equal({ is, why: verdict });
      });
    }

    it(`fails when nobody is behind an ${scheme} URL, and is unsent when the proxy is not there`, async () => {
      expect(await post(`${scheme}://nobody.test/`)).to.deep.equal({ is: 'failed', why: 'failed_connect' });
      const away = await post(`${scheme}://nobody.test/`, 60_000, forever, { path: '/nowhere' });
      expect(away).to.deep.equal({ is: 'unsent', why: 'connect ENOENT /nowhere' });
    });

    it(`is unsent when the machine of the proxy answers nothing, to an ${scheme} URL`, async () => {
      const silent = await startSilentPort();
      const { hostname: host, port } = new URL(silent.url);
      const sent = await post(`${scheme}://one.test/`, 200, forever, { host, port: Number(port) });
      await silent.stop();
      expect(sent).to.include({ is: 'unsent' });
    });
  }

  it('is unsent to an egress whose certificate is not trusted, and not to one that refuses or finds nobody', async () => {
    const [trusted, strange] = [makeTlsFiles('first', ['127.0.0.1']), makeTlsFiles('stranger', ['127.0.0.1'])];
    const egress = await startEgress({ certificate: trusted });
    const { port } = egress.address as { port: number };
    const through = ({ caFile }: TlsFiles) => ({ host: '127.0.0.1', port, tls: { caFile } });
    for (const scheme of ['http', 'https']) {
      const ends = await Promise.all([
        post(`${scheme}://10.0.0.1/`, 60_000, forever, through(trusted)),
        post(`${scheme}://127.0.0.2:9/`, 60_000, forever, through(trusted)),
        post(`${scheme}://10.0.0.1/`, 60_000, forever, through(strange)),
      ]);
      expect(ends.map(({ is }) => is)).to.deep.equal(['refused', 'failed', 'unsent']);
    }
    await egress.close();
    for (const files of [trusted, strange]) files.remove();
  });

  it('a receiver that says 403 has answered', async () => {
    forwarder.answer('one.test', 403);
    expect(await post('http://one.test/')).to.deep.equal({ is: 'answered', status: 403 });
  });

  it('does not follow a redirect', async () => {
    forwarder.answer('two.test', (_, res) => res.writeHead(307, { location: 'http://three.test/' }).end());
    forwarder.answer('three.test', 200);
    expect(await post('http://two.test/')).to.deep.equal({ is: 'answered', status: 307 });
    expect(forwarder.of('three.test')).to.deep.equal([]);
  });

  it('gives up a receiver that hangs, and one that it is told to give up', async () => {
    forwarder.answer('slow.test', 'hang');
    expect(await post('http://slow.test/', 50)).to.deep.equal({ is: 'hung', why: 'no answer in time' });
    const stop = new AbortController();
    const under = post('http://slow.test/', 60_000, stop.signal);
    await until(() => forwarder.of('slow.test').length === 2, 2, 'the second post');
    stop.abort();
    expect(await under).to.include({ is: 'failed' });
  });

  it('a change of protocol is no answer', async () => {
    forwarder.answer('odd.test', (req) =>
      req.socket.end('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n'),
    );
    expect(await post('http://odd.test/')).to.include({ is: 'failed' });
  });

  it('takes in a small part of an endless body, and its status counts', async () => {
    let sent = 0;
    const closed = new Promise<void>((resolve) => {
      forwarder.answer('endless.test', (_, res) => {
        const write = () => {
          while (!res.destroyed && res.write(Buffer.alloc(16_384))) sent += 16_384;
        };
        res.on('drain', write).once('close', resolve);
        write();
      });
    });
    expect(await post('http://endless.test/')).to.deep.equal({ is: 'answered', status: 200 });
    await closed;
    expect(sent).to.be.below(32 * 1024 * 1024);
  });

  it('the status counts of a receiver that never ends its body', async () => {
    forwarder.answer('open.test', (_, res) => res.writeHead(200).write('a'));
    expect(await post('http://open.test/', 3_000)).to.deep.equal({ is: 'answered', status: 200 });
  });

  describe('to an https URL', () => {
    const trusted = getCACertificates('default');
    const ours = makeCertificate('secure.test');
    const stranger = makeCertificate('stranger.test');
    const servers: Server[] = [];
    const asked: IncomingMessage[] = [];
    const serve = async (host: string, pair: typeof ours, answer: RequestListener) => {
      const server = createServer(pair, (req, res) => {
        asked.push(req);
        answer(req, res);
      });
      servers.push(server);
      await once(server.listen(0, '127.0.0.1'), 'listening');
      forwarder.lead(host, (server.address() as AddressInfo).port);
    };
    before(async () => {
      setDefaultCACertificates([...trusted, ours.cert]);
      await serve('secure.test', ours, (_, res) => res.writeHead(403, { 'x-egress-verdict': 'refused_address' }).end());
      await serve('stranger.test', stranger, (_, res) => res.end());
      await serve('other.test', ours, (_, res) => res.end());
    });
    after(() => {
      setDefaultCACertificates(trusted);
      for (const server of servers) server.close();
    });
    beforeEach(() => {
      asked.length = 0;
    });

    it('a post to an https URL names the host inside, where a receiver cannot speak for the proxy', async () => {
      expect(await post('https://secure.test/a?b')).to.deep.equal({ is: 'answered', status: 403 });
      const { url, headers, socket } = asked[0]!;
      const { servername } = socket as TLSSocket & { servername: string };
      expect([url, headers.host, servername]).to.deep.equal(['/a?b', 'secure.test', 'secure.test']);
    });

    for (const [host, why] of [
      ['stranger.test', /self-signed certificate/],
      ['other.test', /does not match/],
    ] as const) {
      it(`nothing is sent to ${host}, whose certificate is not good`, async () => {
        const posted = await post(`https://${host}/`);
        expect(posted).to.include({ is: 'failed' }).and.have.property('why').that.matches(why);
        expect(asked).to.deep.equal([]);
      });
    }

    it('a post to an https URL gives up a receiver that never greets', async () => {
      const mute = createMute((socket) => socket.on('error', () => {}).resume());
      await once(mute.listen(0, '127.0.0.1'), 'listening');
      forwarder.lead('mute.test', (mute.address() as AddressInfo).port);
      expect(await post('https://mute.test/', 100)).to.deep.equal({ is: 'hung', why: 'no answer in time' });
      await new Promise((resolve) => mute.close(resolve));
    });
  });

  it('egress lets it reach what is open, and its refusals are understood', async () => {
    const egress = await startEgress();
    const proxy = egress.address as ServerAddress;
    const source = await startSource((req, res) => req.resume().once('end', () => res.writeHead(201).end()));
    expect(await post(source.url, 60_000, forever, proxy)).to.deep.equal({ is: 'answered', status: 201 });
    for (const scheme of ['http', 'https']) {
      const refused = await post(`${scheme}://${closedAddress}/`, 60_000, forever, proxy);
      expect(refused).to.deep.equal({ is: 'refused', why: 'refused_address' });
    }
    await source.close();
    await egress.close();
  });
});
