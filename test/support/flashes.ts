import { createReadStream, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { expect } from 'chai';
import { inspectUrl } from '../../src/media/inspect-url.ts';
import { produce } from '../../src/media/produce-file.ts';
import { Failed, type MediaOrder, type Produced } from '../../src/media/tools.ts';
import { aTools, run } from './media.ts';
import { startProxy } from './proxy.ts';
import { aFolder } from './redis.ts';

/** Seconds of a film of ten seconds at which its picture flashes and its sound beeps, at distances that tell them apart. */
export const marks = [0.6, 1.9, 3.5, 4.2, 5.8, 6.7, 8.3, 9.1] as const;

const types: Readonly<Record<string, string>> = {
  '.m3u8': 'application/vnd.apple.mpegurl',
  '.mpd': 'application/dash+xml',
};
const film = 'film.mp4';

/** Folder of a URL below which files are sent without a length and without an end, as a radio does. */
export const endless = 'endless';

/** Folder of a URL below which a range that ends behind its file is refused, against RFC 9110, 14.1.2. */
export const strict = 'strict';

/** A folder that a source on loopback serves, with a film that flashes and beeps. */
export interface Flashes {
  readonly url: string;
  readonly film: string;
  readonly ffmpeg: (...words: readonly string[]) => Promise<void>;
  readonly write: (name: string, content: string | Buffer) => void;
  readonly path: (name: string) => string;
  /** Ranges of bytes that files were asked for, in their order. */
  readonly ranges: string[];
  /** Makes the file of an order and looks at it before it goes; gives the code of a failure instead. */
  readonly make: <T>(
    endpoint: MediaOrder['endpoint'],
    name: string,
    args: object,
    look: (produced: Produced) => T | Promise<T>,
  ) => Promise<T | string>;
  /** Asks for the metadata of a link; gives the code of a failure instead. */
  readonly inspect: (name: string) => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/** Starts a source with the film and nothing else. */
export async function openFlashes(): Promise<Flashes> {
  const { folder, remove } = aFolder();
  const path = (name: string) => join(folder, name);
  const ffmpeg = async (...words: readonly string[]) => {
    await run('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...words], { cwd: folder });
  };
  await makeFilm(ffmpeg);
  const ranges: string[] = [];
  const server = createServer((asking, answer) => {
    if (asking.headers.range !== undefined) ranges.push(asking.headers.range);
    send(asking, answer, folder);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const proxy = await startProxy((each) => each === host);
  return {
    url: `http://${host}`,
    film,
    ffmpeg,
    path,
    ranges,
    write: (name, content) => {
      mkdirSync(join(path(name), '..'), { recursive: true });
      writeFileSync(path(name), content);
    },
    make: (endpoint, name, args, look) => {
      const order = { endpoint, args: { query: `http://${host}/${name}`, download_type: 'audio_video', ...args } };
      return inFolder(async (folder) =>
        look(await produce(order, aTools(folder, proxy.url), () => {}, new AbortController().signal)),
      );
    },
    inspect: (name) => {
      const order = { endpoint: 'metadata', args: { query: `http://${host}/${name}` } } as const;
      return inFolder((folder) => inspectUrl(order, aTools(folder, proxy.url), new AbortController().signal));
    },
    stop: async () => {
      await proxy.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      remove();
    },
  };
}

/** Works in a folder that goes afterwards; gives the code and the detail of a failure instead. */
async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T | string> {
  const { folder, remove } = aFolder();
  try {
    return await work(folder);
  } catch (error) {
    if (error instanceof Failed) return `${error.code} ${error.detail}`;
    throw error;
  } finally {
    remove();
  }
}

async function makeFilm(ffmpeg: Flashes['ffmpeg']): Promise<void> {
  const isMarked = (second: string) => marks.map((mark) => `between(${second},${mark},${mark + 0.1})`).join('+');
  const picture = [
    '-f',
    'lavfi',
    '-t',
    '10',
    '-i',
    `color=black:s=64x36:r=25,geq=lum='255*(${isMarked('T')})':cb=128:cr=128`,
  ];
  const sound = ['-f', 'lavfi', '-t', '10', '-i', `aevalsrc='0.8*sin(3000*t)*(${isMarked('t')})':s=48000`];
  const coded = [
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-bf',
    '2',
    '-g',
    '50',
    '-pix_fmt',
    'yuv420p',
    '-c:a',
    'aac',
  ];
  await ffmpeg(...picture, ...sound, ...coded, film);
}

function send(asking: IncomingMessage, answer: ServerResponse, folder: string): void {
  const { pathname } = new URL(asking.url ?? '', 'http://source');
  const [, mode, name = ''] = new RegExp(`^/(?:(${endless}|${strict})/)?(.*)$`).exec(pathname) ?? [];
  const isEndless = mode === endless;
  const file = join(folder, name);
  if (!existsSync(file)) return void answer.writeHead(404).end();
  const { size } = statSync(file);
  const range = /^bytes=(\d+)-(\d*)$/.exec(asking.headers.range ?? '');
  if (mode === strict && Number(range?.[2]) >= size) return void answer.writeHead(416).end();
  const [start, end] = [Number(range?.[1] ?? 0), Math.min(Number(range?.[2] || size), size - 1)];
  const type = types[extname(file)] ?? 'application/octet-stream';
  if (isEndless && asking.method !== 'HEAD') {
    answer.writeHead(200, { 'content-type': type });
    createReadStream(file).pipe(answer, { end: false });
    return;
  }
  const part = range ? { 'content-range': `bytes ${start}-${end}/${size}` } : {};
  answer.writeHead(range ? 206 : 200, { 'content-type': type, 'content-length': end - start + 1, ...part });
  if (asking.method === 'HEAD') answer.end();
  else createReadStream(file, { start, end }).pipe(answer);
}

/** Returns the seconds at which a file flashes and beeps, as a player shows it: with its own timestamps and edit lists. */
export async function marksOf(
  file: string,
): Promise<{ readonly flashes: readonly number[]; readonly beeps: readonly number[] }> {
  const picture = 'scale=16:16,signalstats,metadata=print:key=lavfi.signalstats.YAVG:file=-';
  const nothing = ['-f', 'null', '-'];
  // One ffmpeg for both: loading its libraries takes longer than decoding a short film.
  const { stdout, stderr } = await decode(file, [
    ...['-map', '0:v?', '-vf', picture, ...nothing],
    ...['-map', '0:a?', '-af', 'silencedetect=noise=-30dB:d=0.2', ...nothing],
  ]);
  const pictures = stdout.matchAll(/pts_time:(-?[\d.]+)\s+\S+YAVG=([\d.]+)/g);
  const bright = [...pictures].filter(([, , luma]) => Number(luma) > 128).map(([, second]) => Number(second));
  return {
    flashes: bright.filter((second, n) => n === 0 || Math.abs(second - bright[n - 1]!) > 0.2),
    beeps: [...stderr.matchAll(/silence_end: (-?[\d.]+)(?=[\s\S]*silence_start)/g)].map(([, second]) => Number(second)),
  };
}

/** Returns the seconds at which a file beeps. */
export async function beepsOf(file: string): Promise<readonly number[]> {
  return (await marksOf(file)).beeps;
}

/** Expects the marks from a second of the film on, in picture and sound, within 0.12 s. */
export async function expectMarks(file: string, from = 0, to = 10): Promise<void> {
  const wanted = marks.filter((mark) => mark >= from && mark < to).map((mark) => mark - from);
  const seen = await marksOf(file);
  for (const [name, seconds] of Object.entries(seen)) {
    expect(seconds.length, `${name} ${seconds} of ${wanted}`).to.equal(wanted.length);
    for (const [n, second] of seconds.entries()) expect(second, name).to.be.closeTo(wanted[n]!, 0.12);
  }
}

/** Returns true when the seconds at which pictures are shown only grow. */
export async function isInOrder(file: string): Promise<boolean> {
  const words = ['-v', 'error', '-select_streams', 'v', '-show_entries', 'frame=pts', '-of', 'csv=p=0', file];
  const { stdout } = await run('ffprobe', words, { maxBuffer: 2 ** 26 });
  const seconds = stdout.match(/-?\d+/g)?.map(Number) ?? [];
  return seconds.length > 0 && seconds.every((each, n) => n === 0 || each > seconds[n - 1]!);
}

function decode(file: string, words: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return run('ffmpeg', ['-nostdin', '-hide_banner', '-copyts', '-i', file, ...words], { maxBuffer: 2 ** 26 });
}
