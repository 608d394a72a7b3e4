import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { readPlainTarget, readTunnelTarget } from '../../src/egress/proxy-request.ts';
import { layWrappers } from '../../src/media/ffmpeg-arguments.ts';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { Failed } from '../../src/media/tools.ts';
import { judgeUrl } from '../../src/model/public-address.ts';
import { makeFilms } from '../support/films.ts';
import { aTools, python } from '../support/media.ts';
import { startProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';
import { programs } from '../support/worker.ts';

/** URL as one parser read it. */
type Reading = readonly [scheme: string, host: string, port: number];

const inPython = `
import json, sys, urllib.parse
from yt_dlp.utils import sanitize_url
from yt_dlp.utils.networking import normalize_url
def read(url):
    parts = urllib.parse.urlsplit(normalize_url(sanitize_url(url)))
    host = parts.hostname
    return [parts.scheme, f'[{host}]' if ':' in host else host, parts.port or {'http': 80, 'https': 443}[parts.scheme]]
print(json.dumps([read(each) for each in json.load(sys.stdin)]))
`;

/** Returns URLs that the API accepts, made of what parsers disagree about. */
function acceptedUrls(count: number): string[] {
  const hosts =
    'example.com EXAMPLE.com. bücher.example 8.8.8.8 134744072 010.8.8.8 [2606:4700::1111] a.example:80 a.example:8443 a.example:';
  const odd =
    '/ // /../ /. ? # @ : ; , | ^ \' " % %2f %00 %5c [ ] { } ~ + * ! ( ) = & ü \u200b ＠ ／ http://10.0.0.1/ a b';
  const texts = fc
    .tuple(
      fc.constantFrom('http://', 'https://', 'HTTP://', ' https://'),
      fc.constantFrom(...hosts.split(' ')),
      fc.array(fc.constantFrom(...odd.split(' ')), { maxLength: 6 }),
    )
    .map(([scheme, host, rest]) => `${scheme}${host}${rest.join('')}`);
  const judged = fc.sample(texts, { seed: 15, numRuns: count }).map((text) => judgeUrl(text, []));
  return [...new Set(judged.flatMap((each) => (each.ok ? [each.href] : [])))];
}

function readingOf(href: string): Reading {
  const { protocol, hostname, port } = new URL(href);
  return [protocol.slice(0, -1), hostname, Number(port) || (protocol === 'https:' ? 443 : 80)];
}

describe('A URL that the API accepts', () => {
  const urls = acceptedUrls(4000);

  it('is one of hundreds that were tried', () => expect(urls.length).to.be.at.least(300));

  it('has the same scheme, host and port for Python and yt-dlp', () => {
    const read = JSON.parse(execFileSync(python, ['-c', inPython], { input: JSON.stringify(urls), encoding: 'utf8' }));
    expect(read).to.deep.equal(urls.map(readingOf));
  });

  it('has the same host and port for egress, which sends no fragment', () => {
    const read = urls.map((href): Reading => {
      const [scheme, host, port] = readingOf(href);
      const target = scheme === 'http' ? readPlainTarget(href) : readTunnelTarget(`${host}:${port}`);
      expect(JSON.stringify(target)).to.not.include('#');
      return [scheme, target?.host ?? '', target?.port ?? 0];
    });
    expect(read).to.deep.equal(urls.map(readingOf));
  });

  it('has the same scheme, host and port for ffmpeg', async () => {
    const asked: Reading[] = [];
    const proxy = createServer((request, response) => {
      asked.push(readingOf(request.url ?? ''));
      response.writeHead(403).end();
    });
    proxy.on('connect', (request, socket) => {
      asked.push(readingOf(`https://${request.url}`));
      socket.end('HTTP/1.1 403 no\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { folder, remove } = aFolder();
    const ffprobe = join(layWrappers(join(folder, 'tools'), programs), 'ffprobe');
    const env = { PATH: '/usr/bin:/bin', http_proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    const some = urls.slice(0, 60);
    for (const href of some) await once(spawn(ffprobe, ['-v', 'quiet', '-i', href], { env, stdio: 'ignore' }), 'exit');
    proxy.close();
    remove();
    expect(asked).to.deep.equal(some.map(readingOf));
  });
});

describe('A redirect', () => {
  const clip = readFileSync(join(makeFilms(), 'clip.mp4'));

  /** Inspects a page that leads to a location; returns what was asked of the source, and of which hosts the proxy was asked. */
  async function follow(location: (host: string) => string) {
    const asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = [];
    const source = createServer((request, response) => {
      asked.push({ path: request.url ?? '', headers: request.headers });
      if (request.url === '/start') response.writeHead(302, { location: location(host) }).end();
      else {
        const body = request.url?.startsWith('/film.mp4') ? clip : Buffer.from('abc');
        response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': body.length }).end(body);
      }
    });
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(source.address() as AddressInfo).port}`;
    const proxy = await startProxy((each) => each === host);
    const { folder, remove } = aFolder();
    const order = { endpoint: 'metadata', args: { query: `http://${host}/start` } } as const;
    const end = await inspectUrl(order, aTools(folder, proxy.url), new AbortController().signal).catch(
      (error: unknown) => {
        if (error instanceof Failed) return error.code;
        throw error;
      },
    );
    await proxy.stop();
    source.closeAllConnections();
    source.close();
    remove();
    return { asked, end, hosts: [...new Set(proxy.asked)].filter((each) => each !== host) };
  }

  it('hands yt-dlp no referer, header or id in its fragment', async () => {
    const smuggled = { referer: 'http://evil.example/', http_headers: { 'X-Evil': '1' }, force_videoid: 'evil' };
    const orders = encodeURIComponent(JSON.stringify(smuggled));
    const { asked, end } = await follow(() => `/film.mp4#__youtubedl_smuggle=${orders}`);
    const film = asked.filter(({ path }) => path.startsWith('/film.mp4'));
    expect(film).to.not.be.empty;
    for (const { headers } of film) {
      expect(headers).to.not.have.property('x-evil');
      expect(headers.referer ?? '').to.not.include('evil');
    }
    expect(end).to.have.property('id', 'film');
  });

  for (const location of [
    'http:///127.0.0.1:9/a.mp4',
    'http:\\\\127.0.0.1:9\\a.mp4',
    'http:127.0.0.1:9/a.mp4',
    'http://HOST@127.0.0.1:9/a.mp4',
    'http://127.0.0.1:9\\@HOST/a.mp4',
    'http://127.0.0.1:9#@HOST/a.mp4',
    'file:///etc/passwd',
    'ftp://127.0.0.1:9/a.mp4',
    'data:video/mp4;base64,AAAA',
    'httpproxy://127.0.0.1:9/x:80/a.mp4',
  ]) {
    it(`to ${location} is refused, or followed only as egress reads it`, async () => {
      const { end, hosts } = await follow((host) => location.replace('HOST', host));
      for (const host of hosts) expect(host).to.equal('127.0.0.1:9');
      if (typeof end !== 'string') expect(end.height).to.equal(null);
    });
  }
});
