import { constants, createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { openKubeClient } from '../../src/runners/kubernetes/kube-client.ts';
import { makeRateLimiter } from '../../src/runners/kubernetes/rate-limiter.ts';
import { makeAuthority } from '../support/certificate.ts';
import { startTcpProxy } from '../support/cluster/tcp-proxy.ts';
import { failureOf } from '../support/failure.ts';
import { until } from '../support/until.ts';

describe('the client of an API server that speaks HTTP/2', () => {
  const authority = makeAuthority('test');
  const owner = authority.issue({ name: 'server', hosts: ['127.0.0.1'] });
  const open = (server: string) =>
    openKubeClient({
      access: { server, tls: async () => ({ ca: authority.cert }), headers: async () => ({}) },
      rateLimit: makeRateLimiter(1_000, 1_000),
    });

  it('replaces a connection that died unnoticed', async () => {
    const secure = createSecureServer(owner, (_, res) => void res.end('{}'));
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const line = await startTcpProxy(`https://127.0.0.1:${(secure.address() as AddressInfo).port}`);
    const other = open(line.url);
    await other.ask('GET', '/a');
    line.blackhole();
    expect(await failureOf(other.ask('GET', '/b'))).to.have.property('message', 'The API server does not answer');
    expect(await other.ask('GET', '/c')).to.deep.equal({});
    await other.close();
    await line.stop();
    secure.close();
  });

  it('sends a request that a GOAWAY turned back over another connection while a watch goes on', async () => {
    let isTurnedBack = false;
    const secure = createSecureServer({ ...owner, allowHTTP1: true }, (req, res) => {
      if (req.url?.startsWith('/watch')) return void res.write('one\n');
      if (req.url === '/before' || isTurnedBack) return void res.end('{}');
      isTurnedBack = true;
      req.stream.session?.goaway(constants.NGHTTP2_NO_ERROR, (req.stream.id ?? 0) - 2);
    });
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const other = open(`https://127.0.0.1:${(secure.address() as AddressInfo).port}`);
    const [stop, lines] = [new AbortController(), [] as string[]];
    const reader = { onStart: () => {}, line: (text: string) => void lines.push(text) };
    const following = failureOf(other.stream('/watch', {}, stop.signal, reader));
    try {
      await until(() => lines.length > 0, 5, 'the watch goes on');
      await other.ask('GET', '/before');
      expect(await other.ask('GET', '/a')).to.deep.equal({});
      expect(isTurnedBack).to.equal(true);
    } finally {
      stop.abort(new Error('enough'));
    }
    expect(await following).to.have.property('message', 'enough');
    await other.close();
    secure.close();
  });

  it('replaces a connection that died unnoticed while watches are refused over others', async () => {
    const dead = new Set<unknown>();
    let isDying = false;
    const secure = createSecureServer({ ...owner, allowHTTP1: true }, (req, res) => {
      if (req.httpVersion === '1.1') return void res.writeHead(403).end('{}');
      if (isDying) dead.add(req.stream.session);
      isDying = false;
      if (!dead.has(req.stream.session)) res.end('{}');
    });
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const other = open(`https://127.0.0.1:${(secure.address() as AddressInfo).port}`);
    const stop = new AbortController();
    const watch = async () => {
      const reader = { onStart: () => {}, line: () => {} };
      while (!stop.signal.aborted) {
        await failureOf(other.stream('/watch', {}, stop.signal, reader));
        await pause(100);
      }
    };
    await other.ask('GET', '/a');
    isDying = true;
    const watching = watch();
    try {
      expect(await failureOf(other.ask('POST', '/b'))).to.have.property('message', 'The API server does not answer');
      expect(await other.ask('GET', '/c')).to.deep.equal({});
    } finally {
      stop.abort(new Error('enough'));
      await watching;
      await other.close();
      secure.close();
    }
  });
});
