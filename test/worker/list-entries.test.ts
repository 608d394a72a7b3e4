import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { askInspector } from '../../src/roles/inspector-client.ts';
import { type InspectorPool, startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { serveInspector } from '../../src/worker/inspector-server.ts';
import { plugins } from '../support/media.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { type Source, startSource } from '../support/source-server.ts';
import { programs } from '../support/worker.ts';

describe('the entries of a playlist', () => {
  let source: Source;
  let proxy: TestProxy;
  let inspector: InspectorPool;
  let server: Awaited<ReturnType<typeof serveInspector>>;
  const { folder, remove } = aFolder();

  before(async () => {
    source = await startSource();
    proxy = await startProxy((host) => host === source.host);
    inspector = await startInspectorPool({
      ...{ inspectUrl, programs, root: folder, cgroups: null, sandbox: 'user', plugins: [plugins] },
      egress: { host: '127.0.0.1', port: Number(URL.parse(proxy.url)?.port) },
      ...{ inspectSeconds: 20, maxConcurrent: 4, maxRequests: 100, log: aLog().log },
    });
    server = await serveInspector(inspector, { host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await server.close(0);
    await inspector.close();
    await proxy.stop();
    await source.stop();
    remove();
  });

  const list = (url: string, maxEntries = 1_000) =>
    askInspector({ host: '127.0.0.1', port: server.port }).list(url, maxEntries, 'a', new AbortController().signal);
  const film = (name: string) => `${source.url}/films/${name}`;
  const raw = (type: string, text: string) => `${source.url}/raw?type=${type}&text=${encodeURIComponent(text)}`;

  it('are the links of a feed, each once and in their order, but for those that no web address names', async () => {
    const links = [film('clip.mp4'), 'file:///etc/passwd', film('silent.mp4'), film('clip.mp4'), 'ytsearch:cats'];
    const items = links.map((link) => `<item><title>x</title><link>${link}</link></item>`);
    const feed = raw(
      'text/xml',
      `<?xml version="1.0"?><rss><channel><title>x</title>${items.join('')}</channel></rss>`,
    );
    expect(await list(feed)).to.deep.equal({ entries: [film('clip.mp4'), film('silent.mp4')] });
    expect(source.asked).not.to.include('/films/clip.mp4');
  });

  it('are the media themselves where a page holds several', async () => {
    const page = ['clip.mp4', 'silent.mp4'].map((name) => `<video src="${film(name)}"></video>`).join('');
    const found = await list(raw('text/html', `<!doctype html><title>x</title>${page}`));
    expect(found).to.deep.equal({ entries: [film('clip.mp4'), film('silent.mp4')] });
  });

  it('are read no further than the limit, and end at 900 KB of text', async () => {
    const many = Array.from({ length: 500 }, (_, n) => film(`clip.mp4?${n}`));
    expect(await list(source.addPage('many', { entries: many }), 3)).to.deep.equal({ entries: many.slice(0, 3) });
    const long = many.map((url) => `${url}${'x'.repeat(4_000)}`);
    const found = await list(source.addPage('long', { entries: long }));
    expect('entries' in found && found.entries.length).to.be.within(200, 230);
    const tooLong = [film(`clip.mp4?${'x'.repeat(9_000)}`), film('clip.mp4')];
    expect(await list(source.addPage('too-long', { entries: tooLong }))).to.deep.equal({ entries: [film('clip.mp4')] });
  });

  it('of playlists inside a playlist stand in their place', async () => {
    const inner = {
      _type: 'playlist',
      entries: [
        { _type: 'url', url: film('b') },
        { _type: 'url', url: film('c') },
      ],
    };
    const page = source.addPage('outer', { entries: [film('a'), inner, { webpage_url: film('d') }] });
    expect(await list(page)).to.deep.equal({ entries: ['a', 'b', 'c', 'd'].map(film) });
  });

  it('are the URL itself when it leads to one medium, and none when the list is empty', async () => {
    expect(await list(film('clip.mp4'))).to.deep.equal({ entries: [film('clip.mp4')] });
    expect(await list(source.addPage('empty', { entries: [] }))).to.deep.equal({ entries: [] });
  });

  it('keep their fragments but for what yt-dlp smuggles in them, and a list is found by its own fragment', async () => {
    const own = film('#!/a');
    const smuggled = ['#__youtubedl_smuggle=1', '#!/b#__youtubedl_smuggle=2'].map(film);
    source.addPage('list', { entries: [own, ...smuggled, `${own}#__youtubedl_smuggle=3`] });
    expect(await list(`${source.url}/app/#!/list`)).to.deep.equal({ entries: [own, film(''), film('#!/b')] });
  });

  it('are the URL with its fragment when that leads to one medium', async () => {
    source.addPage('one', { info: { formats: [{ format_id: 'x', url: film('clip.mp4'), ext: 'mp4' }] } });
    for (const url of [film('clip.mp4#t=1'), `${source.url}/app/#!/one`]) {
      expect(await list(url)).to.deep.equal({ entries: [url] });
    }
  });

  it('of a page that fails are its failure', async () => {
    const lost = await list(`${source.url}/status/404`);
    expect('failure' in lost && lost.failure.code).to.equal('deleted');
    const inner = await list('http://127.0.0.1:1/');
    expect('failure' in inner && inner.failure.code).to.equal('address_not_allowed');
  });
});
