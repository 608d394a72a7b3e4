import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createListener, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { produce } from '../../src/media/produce-file.ts';
import { Failed, type Produced } from '../../src/media/tools.ts';
import type { InspectionResult } from '../../src/model/inspection-result.ts';
import { type InspectorPool, startInspectorPool } from '../../src/worker/inspector-pool.ts';
import { layCappedPython } from '../support/capped-python.ts';
import { clipSeconds, makeFilms } from '../support/films.ts';
import { aTools } from '../support/media.ts';
import { startProxy, type TestProxy } from '../support/proxy.ts';
import { aFolder, aLog } from '../support/redis.ts';
import { programs } from '../support/worker.ts';
import { type HostilePlaylist, makeHostilePlaylists } from './hostile-playlists.ts';

const atOnce = 4;
const canaryHeight = 480;

describe('A hostile playlist, with neither sandbox nor Landlock,', function () {
  this.timeout(600_000);
  const films = makeFilms();
  const file = join(films, `v${canaryHeight}.mp4`);
  const shape = makeHostilePlaylists({ listener: '127.0.0.1:1', file });
  let corpus: readonly HostilePlaylist[];
  let listener: Listener;
  let source: PlaylistSource;
  let proxy: TestProxy;
  let inspector: InspectorPool;
  const { folder, remove } = aFolder();

  before(async () => {
    listener = await listen();
    corpus = makeHostilePlaylists({ listener: listener.host, file });
    source = await startPlaylistSource(corpus, listener.host, readFileSync(join(films, 'hls/0.ts')));
    proxy = await startProxy((host) => host === source.host);
    inspector = await startInspectorPool({
      ...{ inspectUrl, root: folder, cgroups: null, sandbox: 'none', plugins: [], log: aLog().log },
      programs: { ...programs, python: layCappedPython(folder, 0) },
      egress: { host: '127.0.0.1', port: Number(new URL(proxy.url).port) },
      ...{ inspectSeconds: 60, maxConcurrent: 2 * atOnce, maxRequests: 10_000 },
    });
  });
  after(async () => {
    await inspector.close();
    await Promise.all([proxy.stop(), source.stop(), listener.stop()]);
    remove();
  });

  beforeEach(() => {
    listener.heard.length = 0;
  });

  it('is one of at least 150', () => expect(shape.length).to.be.at.least(150));

  for (const [position, count] of countsOf(shape.map(({ position }) => position))) {
    it(`reaches nothing past egress and no file when it is inspected (${position}: ${count} playlists)`, async () => {
      const cases = corpus.filter((each) => each.position === position);
      const results = await inEach(cases, (each) =>
        inspector.inspect(source.urlOf(each), each.title, new AbortController().signal),
      );
      expect(listener.heard).to.deep.equal([]);
      expect(results.filter(showsCanary)).to.deep.equal([]);
    });
  }

  it('reaches nothing past egress and no file when its beginning is fetched (httpproxy in each position)', async () => {
    const cases = corpus.filter(({ title, position }) => title === `httpproxy as ${position}`);
    const made = await inEach(cases, (each) => makeBeginning(source.urlOf(each), proxy));
    expect(listener.heard).to.deep.equal([]);
    expect(made.map((each) => each?.metadata.height)).to.not.include(canaryHeight);
  });

  it('reaches nothing past egress and no file when its beginning is fetched (files in each position of HLS)', async () => {
    const cases = corpus.filter(
      ({ title, position }) => title === `file as ${position}` && /segment|key|map/.test(title),
    );
    const made = await inEach(cases, (each) => makeBeginning(source.urlOf(each), proxy));
    expect(made.map((each) => each?.metadata.height)).to.not.include(canaryHeight);
  });

  it('reaches nothing past egress when it is live and names other URLs in a later reading', async () => {
    expect(await makeBeginning(`${source.url}/page/live`, proxy)).to.equal(null);
    expect(source.readings()).to.be.at.least(2);
    expect(listener.heard).to.deep.equal([]);
  });

  it('is no reason to refuse a good one, whose length and size are told', async () => {
    const result = await inspector.inspect(`${source.url}/good/list.m3u8`, 'good', new AbortController().signal);
    expect(result).to.have.nested.property('metadata.height', 360);
    expect('metadata' in result && result.metadata.duration).to.be.closeTo(clipSeconds, 1);
  });
});

function countsOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

const video = { download_type: 'audio_video', video_quality: 'best', video_format: 'mp4' };

/** Makes the first two seconds of a URL, without any sandbox; null when that fails. */
async function makeBeginning(query: string, proxy: TestProxy): Promise<Produced | null> {
  const { folder, remove } = aFolder();
  const order = { endpoint: 'video', args: { ...video, query, max_duration: 2 } } as const;
  const { signal } = new AbortController();
  try {
    return await produce(order, aTools(folder, proxy.url), () => {}, signal);
  } catch (error) {
    if (error instanceof Failed) return null;
    throw error;
  } finally {
    remove();
  }
}

function showsCanary(result: InspectionResult): boolean {
  return 'metadata' in result && result.metadata.height === canaryHeight;
}

/** Calls `act` for each, a few at a time. */
async function inEach<T, R>(all: readonly T[], act: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const each of left) results.push(await act(each));
    }),
  );
  return results;
}

interface Listener {
  readonly host: string;
  /** Bytes that reached the listener, all of which went past egress. */
  readonly heard: string[];
  readonly stop: () => Promise<void>;
}

/** Listens for TCP and UDP at one port. */
async function listen(): Promise<Listener> {
  const heard: string[] = [];
  const open = new Set<Socket>();
  const server = createListener((socket) => {
    const at = heard.push('a TCP connection') - 1;
    open.add(socket.on('error', () => undefined));
    socket.once('data', (said) => {
      heard[at] = said.toString('latin1').slice(0, 100);
      socket.end('HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const datagrams = createSocket('udp4', (said) => heard.push(`a datagram ${said.toString('latin1').slice(0, 100)}`));
  datagrams.bind(port, '127.0.0.1');
  await once(datagrams, 'listening');
  const stop = async () => {
    datagrams.close();
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { host: `127.0.0.1:${port}`, heard, stop };
}

interface PlaylistSource {
  readonly url: string;
  readonly host: string;
  readonly urlOf: (playlist: HostilePlaylist) => string;
  /** How often the live playlist was read. */
  readonly readings: () => number;
  readonly stop: () => Promise<void>;
}

/** Serves `/NUMBER/FILE` of the corpus, and good pieces of a film. */
async function startPlaylistSource(
  corpus: readonly HostilePlaylist[],
  listener: string,
  piece: Buffer,
): Promise<PlaylistSource> {
  const films = makeFilms();
  let readings = 0;
  const live = () => {
    readings += 1;
    const uri = readings === 1 ? '/good.ts' : `httpproxy://${listener}/x:80/live.ts`;
    return `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:${readings}\n#EXTINF:1,\n${uri}\n`;
  };
  const page = (host = '') => {
    const format = { format_id: 'x', url: `http://${host}/live/list.m3u8`, ext: 'mp4', protocol: 'm3u8_native' };
    return JSON.stringify({ info: { is_live: true, formats: [format] } });
  };
  const answer = ({ url: path = '', headers: { host } }: IncomingMessage, response: ServerResponse) => {
    const [, number = '', name = ''] = path.split('/');
    const served = corpus[Number(number)]?.files[name];
    if (number === 'page') return response.end(page(host));
    if (number === 'live') return response.end(live());
    if (number === 'good') return response.end(readFileSync(join(films, 'hls', name)));
    if (number === 'good.ts') return response.setHeader('content-type', 'video/mp2t').end(piece);
    if (served === undefined) return response.writeHead(404).end();
    if (served.location !== undefined) {
      return response.writeHead(302, { location: served.location }).end();
    }
    const headers = {
      'content-type': served.type ?? 'video/mp4',
      ...(served.encoding && { 'content-encoding': served.encoding }),
    };
    return response.writeHead(200, headers).end(served.body);
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${host}`,
    host,
    readings: () => readings,
    urlOf: (playlist) => `http://${host}/${corpus.indexOf(playlist)}/${Object.keys(playlist.files)[0]}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
