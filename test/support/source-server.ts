import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeFilms } from './films.ts';

/** A source of films on loopback, with everything that may be wrong with one. */
export interface Source {
  readonly url: string;
  readonly host: string;
  /** Paths that were asked for, in their order. */
  readonly asked: string[];
  /** Bytes of bodies that were sent since the last `forget`. */
  readonly sent: () => number;
  readonly forget: () => void;
  /** Lays a page for the test's extractor under `/page/NAME`. */
  readonly addPage: (name: string, page: unknown) => string;
  /** Has films under `/held/` wait and those under `/drip/` drip, until the function that it gives is called. */
  readonly hold: () => () => void;
  readonly stop: () => Promise<void>;
}

interface Reply {
  readonly asking: IncomingMessage;
  readonly answer: ServerResponse;
  /** The path without its first word. */
  readonly rest: readonly string[];
  readonly send: (bytes: Buffer) => Promise<void>;
}

const types: Readonly<Record<string, string>> = {
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.mkv': 'video/x-matroska',
  '.mp3': 'audio/mpeg',
  '.m4a': 'audio/mp4',
  '.ts': 'video/mp2t',
  '.m4s': 'video/iso.segment',
  '.m3u8': 'application/vnd.apple.mpegurl',
  '.mpd': 'application/dash+xml',
};

/** Starts a source. */
export async function startSource(address = '127.0.0.1'): Promise<Source> {
  const films = makeFilms();
  const pages = new Map<string, unknown>();
  const asked: string[] = [];
  let sent = 0;
  let gate = Promise.resolve();
  const routes = makeRoutes(films, pages, () => gate);
  const server = createServer((asking, answer) => {
    const path = decodeURIComponent(URL.parse(asking.url ?? '/', 'http://source')?.pathname ?? '/');
    asked.push(path);
    const [first = '', ...rest] = path.slice(1).split('/');
    const route = routes[first] ?? routes.status;
    const send = async (bytes: Buffer) => {
      sent += bytes.length;
      if (!answer.write(bytes)) await room(answer);
    };
    void Promise.resolve(route?.({ asking, answer, rest, send })).catch(() => answer.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const host = `${address}:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${host}`,
    host,
    asked,
    sent: () => sent,
    forget: () => {
      sent = 0;
      asked.length = 0;
    },
    addPage: (name, page) => {
      pages.set(name, page);
      return `http://${host}/page/${name}`;
    },
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return resolve;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Settles when more can be written, or nobody listens any more. */
function room(answer: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      answer.off('drain', done).off('close', done);
      resolve();
    };
    if (answer.destroyed) resolve();
    else answer.on('drain', done).on('close', done);
  });
}

type Route = (reply: Reply) => unknown;

function makeRoutes(
  films: string,
  pages: ReadonlyMap<string, unknown>,
  gate: () => Promise<void>,
): Readonly<Record<string, Route>> {
  const begun = Date.now();
  const file = (reply: Reply, rest: readonly string[], rate?: number) =>
    sendFile(reply, join(films, normalize(rest.join('/'))), rate);
  return {
    films: (reply) => file(reply, reply.rest),
    held: async (reply) => {
      await gate();
      await file(reply, reply.rest);
    },
    /** /drip/WORD/FILE: a download that goes on for minutes, and ends soon after the gate is opened. */
    drip: (reply) => drip(reply, join(films, normalize(reply.rest.slice(1).join('/'))), gate()),
    /** /rate/BYTES_A_SECOND/FILE: so many on each connection. */
    rate: (reply) => file(reply, reply.rest.slice(1), Number(reply.rest[0])),
    /** /without/PART/FILE…: a folder in which one file is missing. */
    without: (reply) => (reply.rest.at(-1) === reply.rest[0] ? gone(reply, 404) : file(reply, reply.rest.slice(1))),
    page: ({ answer, rest }) => {
      const page = pages.get(rest[0] ?? '');
      answer
        .writeHead(page === undefined ? 404 : 200, { 'content-type': 'application/json' })
        .end(typeof page === 'string' ? page : JSON.stringify(page ?? {}));
    },
    status: (reply) => gone(reply, Number(reply.rest[0] ?? 404) || 404),
    html: ({ answer, rest }) =>
      answer.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><title>x</title>${rest.join('/')}`),
    raw: ({ asking, answer }) => {
      const wanted = new URL(asking.url ?? '', 'http://source').searchParams;
      answer.writeHead(200, { 'content-type': wanted.get('type') ?? 'video/mp4' }).end(wanted.get('text') ?? '');
    },
    to: ({ asking, answer }) => answer.writeHead(302, { location: (asking.url ?? '').split('?to=')[1] ?? '/' }).end(),
    /** /live/list.m3u8: a stream that goes on by the clock, two seconds a piece. */
    live: (reply) => {
      if (reply.rest[0] !== 'list.m3u8') return file(reply, ['fast', ...reply.rest]);
      const last = Math.floor((Date.now() - begun) / 2000) + 3;
      const pieces = [last - 2, last - 1, last].map((n) => `#EXTINF:2,\n${n}.ts`);
      const head = `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:${last - 2}\n`;
      reply.answer.writeHead(200, { 'content-type': types['.m3u8'] }).end(`${head}${pieces.join('\n')}\n`);
    },
    ...makeBadRoutes(films),
  };
}

/** Routes that fail before the first byte or in the middle, or that never end. */
function makeBadRoutes(films: string): Readonly<Record<string, Route>> {
  const torn = new Map<string | undefined, number>();
  return {
    /** /torn/ranges/FILE: breaks off in the middle, and resumes there. /torn/whole/FILE: breaks off twice, and cannot resume. */
    torn: async (reply) => {
      const { asking, answer, rest } = reply;
      const path = join(films, normalize(rest.slice(1).join('/')));
      if (rest[0] === 'whole') delete asking.headers.range;
      // A page is read before its file is fetched.
      const times = (torn.get(asking.url) ?? 0) + 1;
      torn.set(asking.url, times);
      const breaks = rest[0] === 'whole' ? times <= 2 : asking.headers.range === undefined;
      if (!breaks) return sendFile(reply, path);
      const film = readFileSync(path);
      answer.writeHead(200, { 'content-type': types[extname(path)], 'content-length': film.length });
      await reply.send(film.subarray(0, film.length / 2));
      answer.destroy();
    },
    /** Never answers. */
    silence: () => undefined,
    hang: ({ answer }) =>
      answer.writeHead(200, { 'content-type': 'video/mp4', 'content-length': '1000000' }).flushHeaders(),
    broken: async ({ answer, send }) => {
      answer.writeHead(200, { 'content-type': 'video/mp4', 'content-length': '1000000' });
      await send(Buffer.alloc(1000));
      answer.destroy();
    },
    endless: async ({ answer, send }) => {
      answer.writeHead(200, { 'content-type': 'video/mp4' });
      for (const piece = Buffer.alloc(2 ** 18, 1); !answer.destroyed; ) await send(piece);
    },
    'endless-page': async ({ answer, send }) => {
      answer.writeHead(200, { 'content-type': 'text/html' });
      for (const piece = Buffer.from('<p>more</p>'.repeat(10_000)); !answer.destroyed; ) await send(piece);
    },
    title: async ({ answer, send }) => {
      answer.writeHead(200, { 'content-type': 'text/html' });
      await send(Buffer.from('<!doctype html><html><head><title>'));
      for (let n = 0; n < 3 && !answer.destroyed; n += 1) await send(Buffer.alloc(2 ** 20, 'a'));
      answer.end('</title></head><body><video src="/films/clip.mp4"></video></body></html>');
    },
    bomb: ({ answer }) => {
      answer.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
      createReadStream(join(films, 'bomb.gz')).pipe(answer);
    },
    'endless-gzip': async ({ answer, send }) => {
      answer.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
      for (const piece = Buffer.alloc(2 ** 18, 1); !answer.destroyed; ) await send(piece);
    },
  };
}

function gone({ answer }: Reply, status: number): void {
  answer.writeHead(status, { 'content-type': 'text/html' }).end(`<!doctype html><title>${status}</title>`);
}

/** Sends an MP4 that is padded to megabytes, within six minutes unless the gate opens. A worker gives up below 10 KiB a second, which a busy machine may come to. */
async function drip({ asking, answer, send }: Reply, path: string, gate: Promise<void>): Promise<void> {
  const [rate, paddingBytes, zeros] = [49_152, 18_000_000, Buffer.alloc(4096)];
  const box = Buffer.from('____free');
  box.writeUInt32BE(paddingBytes, 0);
  const film = Buffer.concat([readFileSync(path), box]);
  const total = film.length - box.length + paddingBytes;
  answer.writeHead(200, { 'content-type': types[extname(path)], 'content-length': total });
  const begun = performance.now();
  let isOpen = false;
  void gate.then(() => {
    isOpen = true;
  });
  for (let sent = 0; sent < total && asking.method !== 'HEAD' && !answer.destroyed; ) {
    const early = (sent / rate) * 1000 - (performance.now() - begun);
    if (!isOpen && early > 0) await Promise.race([gate, pause(early)]);
    const piece = sent < film.length ? film.subarray(sent, sent + zeros.length) : zeros.subarray(0, total - sent);
    await send(piece);
    sent += piece.length;
  }
  answer.end();
}

async function sendFile(reply: Reply, path: string, rate?: number): Promise<void> {
  if (!existsSync(path) || !statSync(path).isFile()) return gone(reply, 404);
  const { size } = statSync(path);
  const range = /^bytes=(\d+)-(\d*)$/.exec(reply.asking.headers.range ?? '');
  const start = range ? Number(range[1]) : 0;
  const end = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
  if (range && start >= size) return gone(reply, 416);
  const headers = {
    'content-type': types[extname(path)] ?? 'application/octet-stream',
    'accept-ranges': 'bytes',
    'content-length': end - start + 1,
  };
  const part = range ? { 'content-range': `bytes ${start}-${end}/${size}` } : {};
  reply.answer.writeHead(range ? 206 : 200, { ...headers, ...part });
  if (reply.asking.method !== 'HEAD' && size > 0) await flow(reply, path, start, end, rate);
  reply.answer.end();
}

async function flow(reply: Reply, path: string, start: number, end: number, rate?: number): Promise<void> {
  const begun = performance.now();
  let done = 0;
  const highWaterMark = rate === undefined ? 65_536 : Math.max(1, Math.min(65_536, Math.ceil(rate / 20)));
  for await (const piece of createReadStream(path, { start, end, highWaterMark })) {
    if (reply.answer.destroyed) return;
    await reply.send(piece);
    done += piece.length;
    const early = rate === undefined ? 0 : (done / rate) * 1000 - (performance.now() - begun);
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
  }
}
