import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { pythonFlags } from '../../src/media/yt-dlp.ts';
import { aTools, driver, openMediaFixture, plugins, python } from '../support/media.ts';
import { startProxy } from '../support/proxy.ts';
import { aFolder } from '../support/redis.ts';
import { seed } from '../support/seed.ts';

const smuggled = encodeURIComponent(
  JSON.stringify({ force_videoid: 'evil', referer: 'http://evil.example/', http_headers: { 'X-Evil': '1' } }),
);

const script = `
import json, random, sys
sys.path.insert(0, ${JSON.stringify(dirname(driver))})
import driver
from addresses import address_of, site_of
driver.prepare([${JSON.stringify(plugins)}])
driver.sites.compile_lazily(driver.yt_dlp.extractor.gen_extractor_classes())
downloader = driver.Downloader(driver.options({'proxy': '', 'tools': '/', 'node': '/'}, print))

def address(urls):
    return [address_of(downloader, url) for url in urls]

def examples(seed, count):
    """Counts the example URLs of yt-dlp that keep their site: those with a fragment, and others with an added one."""
    urls = {each['url'].partition('#__youtubedl')[0] for site in driver.yt_dlp.extractor.gen_extractor_classes() for each in site.get_testcases(True)}
    urls = sorted(url for url in urls if url.startswith('http'))
    sites = [[site_of(downloader, address_of(downloader, url)) is site_of(downloader, url), address_of(downloader, url) == url] for url in urls if '#' in url]
    plain = random.Random(seed).sample([url for url in urls if '#' not in url], count)
    kept = [site_of(downloader, address_of(downloader, url + '#t=10')) is site_of(downloader, url) for url in plain]
    return {'whole': sum(same and whole for same, whole in sites), 'moved': sum(not same for same, _ in sites), 'kept': sum(kept)}

print(json.dumps(globals()[sys.argv[1]](*json.loads(sys.argv[2]))))
`;

function ask<T>(name: string, ...args: unknown[]): T {
  const words = [...pythonFlags, '-c', script, name, JSON.stringify(args)];
  return JSON.parse(execFileSync(python, words, { encoding: 'utf8', timeout: 250_000 })) as T;
}

describe('The fragment of a URL', () => {
  it('goes to yt-dlp only for a site that takes it, and not where the site reads it as a part of a name', () => {
    const rows = [
      ['https://a.example/app/#!/one', 'https://a.example/app/#!/one'],
      ['https://a.example/app/#!/one#t=10', 'https://a.example/app/'],
      ['https://a.example/page/one#t=10', 'https://a.example/page/one#t=10'],
      ['https://a.example/named/one#t=10', 'https://a.example/named/one'],
      ['https://a.example/named/#one', 'https://a.example/named/#one'],
      ['https://a.example/film.mp4#t=10', 'https://a.example/film.mp4'],
      ['https://a.example/film.mp4', 'https://a.example/film.mp4'],
    ];
    expect(
      ask(
        'address',
        rows.map(([url]) => url),
      ),
    ).to.deep.equal(rows.map(([, address]) => address));
  });

  it(`leads to the site that the examples of yt-dlp name, and takes no other URL from its site (seed ${seed})`, () => {
    const { whole, moved, kept } = ask<Record<'whole' | 'moved' | 'kept', number>>('examples', seed, 300);
    expect(whole).to.be.above(100);
    expect(moved).to.be.below(3);
    expect(kept).to.be.above(294);
  });

  it('is in no request for a page, and gives yt-dlp no referer, header or id', async () => {
    const asked: { readonly path: string; readonly headers: string }[] = [];
    const source = createServer((request, response) => {
      asked.push({ path: request.url ?? '', headers: JSON.stringify(request.headers) });
      const info = {
        title: 'One',
        formats: [{ format_id: 'x', url: 'http://127.0.0.1:9/a.mp4', ext: 'mp4' }],
        duration: 1,
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ info }));
    });
    await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(source.address() as AddressInfo).port}`;
    const proxy = await startProxy((each) => each === host);
    const ends: unknown[] = [];
    for (const fragment of ['t=10', `__youtubedl_smuggle=${smuggled}`]) {
      const order = { endpoint: 'metadata', args: { query: `http://${host}/page/one#${fragment}` } } as const;
      const { folder, remove } = aFolder();
      const { id } = await inspectUrl(order, aTools(folder, proxy.url), new AbortController().signal);
      remove();
      ends.push(id);
    }
    await proxy.stop();
    source.closeAllConnections();
    source.close();
    expect(ends).to.deep.equal(['one', 'one']);
    expect(asked.map(({ path }) => path)).to.deep.equal(['/page/one', '/page/one']);
    for (const { headers } of asked) expect(headers.toLowerCase()).to.not.include('evil');
  });

  it('of a direct link leaves its id as it is, and gives it no order', async () => {
    const fixture = await openMediaFixture();
    const deliver = (fragment: string) => {
      const query = `${fixture.source.url}/films/clip.mp4${fragment}`;
      const order = {
        endpoint: 'video',
        args: { query, download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' },
      } as const;
      return fixture.make(order, ({ produced, failed }) => {
        expect(failed?.detail ?? '').to.equal('');
        expect(produced?.metadata).to.include({ id: 'clip', title: 'clip' });
      });
    };
    const ends = await Promise.allSettled(['', '#t=10.5', `#__youtubedl_smuggle=${smuggled}`].map(deliver));
    await fixture.stop();
    expect(ends.filter(({ status }) => status === 'rejected')).to.deep.equal([]);
  });
});
