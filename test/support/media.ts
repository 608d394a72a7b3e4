import { execFile } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { layWrappers } from '../../src/media/ffmpeg-arguments.ts';
import { type FileProbe, readProbe } from '../../src/media/probe-file.ts';
import { produce } from '../../src/media/produce-file.ts';
import { spawnChild } from '../../src/media/spawn-child.ts';
import { Failed, type MediaLimits, type MediaOrder, type MediaTools, type Produced } from '../../src/media/tools.ts';
import type { AttemptProgress } from '../../src/model/attempt-protocol.ts';
import { startProxy, type TestProxy } from './proxy.ts';
import { aFolder } from './redis.ts';
import { type Source, startSource } from './source-server.ts';

/** Runs a program while the sources and proxies of this process go on answering. */
export const run = promisify(execFile);

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The Python that has yt-dlp, of the project's own environment. */
export const python = join(root, '.cache/python/bin/python3');
export const driver = join(root, 'src/media/driver.py');
export const plugins = join(root, 'test/support/plugins');

/** A source, a proxy that leads to nothing else, and what a job works with. */
export interface MediaFixture {
  readonly source: Source;
  readonly proxy: TestProxy;
  /** Runs an order in a new folder that is gone after `look`. */
  readonly make: <T>(
    order: MediaOrder,
    look: (made: MadeFile) => T | Promise<T>,
    limits?: Partial<MediaLimits>,
  ) => Promise<T>;
  readonly stop: () => Promise<void>;
}

export interface MadeFile {
  readonly produced: Produced | null;
  readonly failed: Failed | null;
  readonly told: readonly AttemptProgress[];
  readonly folder: string;
  readonly seconds: number;
}

/** Folder of the ffmpeg and ffprobe that are tested: those of the images are newer than the machine's, which makes the films. */
const toolFolder = process.env.FFMPEG_FOLDER ?? '/usr/bin';
const programs = { ffmpeg: join(toolFolder, 'ffmpeg'), ffprobe: join(toolFolder, 'ffprobe') };

export const roomy: MediaLimits = { fileBytes: 2 ** 30, inspectSeconds: 50, slowBytes: 10_240, slowSeconds: 60 };

/** Gives tools with a private folder. */
export function aTools(folder: string, proxy: string, limits: Partial<MediaLimits> = {}): MediaTools {
  return {
    python,
    driver,
    ...programs,
    node: process.execPath,
    folder,
    wrappers: layWrappers(join(folder, 'tools'), programs),
    proxy,
    limits: { ...roomy, ...limits },
    plugins: [plugins],
    cookies: null,
    run: spawnChild,
  };
}

/** Starts a fixture. */
export async function openMediaFixture(): Promise<MediaFixture> {
  const source = await startSource();
  const proxy = await startProxy((host) => host === source.host);
  return {
    source,
    proxy,
    make: async (order, look, limits = {}) => {
      const { folder, remove } = aFolder();
      const told: AttemptProgress[] = [];
      const begun = performance.now();
      try {
        const tools = aTools(folder, proxy.url, limits);
        const end = await produce(order, tools, (each) => told.push(each), new AbortController().signal).then(
          (produced) => ({ produced, failed: null }),
          (error: unknown) => {
            if (error instanceof Failed) return { produced: null, failed: error };
            throw error;
          },
        );
        return await look({ ...end, told, folder, seconds: (performance.now() - begun) / 1000 });
      } finally {
        remove();
      }
    },
    stop: async () => {
      await proxy.stop();
      await source.stop();
    },
  };
}

/** Records a stream of a source of its own; returns the length of the file, and what its metadata say of the stream. */
export async function recordLive(
  serve: RequestListener,
  path: string,
  args: MediaOrder['args'],
  { told = () => {}, see = () => {} }: { told?: (stage: string) => void; see?: (file: string) => unknown } = {},
): Promise<{ readonly seconds: number | null; readonly liveStatus: unknown }> {
  const source = createServer(serve);
  await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(source.address() as AddressInfo).port}`;
  const proxy = await startProxy((each) => each === host);
  const { folder, remove } = aFolder();
  const order: MediaOrder = { endpoint: 'video', args: { ...args, query: `http://${host}${path}` } };
  try {
    const tools = aTools(folder, proxy.url);
    const { signal } = new AbortController();
    const { file, metadata } = await produce(order, tools, ({ stage }) => told(stage), signal);
    await see(file);
    return { seconds: (await look(file)).duration, liveStatus: metadata.live_status };
  } finally {
    await proxy.stop();
    source.closeAllConnections();
    source.close();
    remove();
  }
}

/** Reads a delivered file with the machine's own ffprobe. */
export async function look(file: string): Promise<FileProbe & { readonly kilobits: number }> {
  const words = ['-v', 'error', '-of', 'json', '-show_format', '-show_streams', file];
  const json = JSON.parse((await run('ffprobe', words)).stdout) as { format: { bit_rate?: string } };
  return { ...readProbe(json), kilobits: Number(json.format.bit_rate ?? 0) / 1000 };
}

/** Returns the seconds that a delivered file lasts. */
export async function durationOf(file: string): Promise<number | null> {
  return (await look(file)).duration;
}

/** Returns the complaints of ffmpeg when it decodes the whole file; empty when all is well. */
export async function decode(file: string): Promise<string> {
  const { stderr } = await run('ffmpeg', ['-nostdin', '-v', 'error', '-i', file, '-f', 'null', '-']);
  return stderr.trim();
}
