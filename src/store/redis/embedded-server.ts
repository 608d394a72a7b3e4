import { chmod, mkdir, readFile, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { askServer, checkPrograms, spawnRedis, whenReady } from './redis-process.ts';

export interface ServerOptions {
  /** A folder of its own: the file with every change, the log, the socket. */
  readonly folder: string;
  readonly log: Log;
  /** When a change reaches the disk; `always` is before Redis answers. */
  readonly fsync?: 'always' | 'everysec' | 'no';
  readonly maxMemoryBytes?: number;
  /** The longest pause before it is started again, when it ends again and again. */
  readonly longestDelayMs?: number;
  /** Called each time it runs again after it ended by itself. */
  readonly onRestart?: () => void;
}

export interface RedisServer {
  /** Path of its UNIX socket. */
  readonly socket: string;
  /** The form of it that `connect` takes. */
  readonly url: string;
  /** Of the present process; another one after a restart. */
  readonly pid: () => number;
  /** Ends it and waits until it is gone. Repeating it gives the same promise. */
  readonly stop: () => Promise<void>;
}

const longestSocketBytes = 107;
const logFile = 'redis.log';
const longestLogBytes = 1024 * 1024;
const shortestDelayMs = 50;
const steadyMs = 10_000;
const takeOverSeconds = 3;

/**
 * Starts a redis-server that keeps every change on disk, and keeps it running until it is stopped; it ends with this process
 * at the latest. Answers once Redis does, which takes as long as reading its file.
 */
export async function startRedis(options: ServerOptions): Promise<RedisServer> {
  const folder = resolve(options.folder);
  const socket = join(folder, 'redis.sock');
  if (Buffer.byteLength(socket) > longestSocketBytes) {
    throw new Error(
      `The path of the data folder is too long for a UNIX socket (${longestSocketBytes} bytes): ${socket}`,
    );
  }
  checkPrograms();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  await waitUntilFree(socket);
  await limitLog(folder);

  const begin = () => spawnRedis(folder, settings(options));
  let server = begin();
  await whenReady(server, socket).catch(async (cause) => {
    throw new Error(`${cause.message}: ${await lastLine(folder)}`, { cause });
  });
  const stopping = new AbortController();
  const kept = keepRunning(folder, options, stopping.signal, {
    ended: () => server.ended,
    begin: async () => {
      server = begin();
      await whenReady(server, socket);
      options.onRestart?.();
    },
  });
  const stop = async (): Promise<void> => {
    stopping.abort();
    await server.stop();
    await kept;
  };
  let stopped: Promise<void> | undefined;
  return {
    socket,
    url: `unix://${socket.split('/').map(encodeURIComponent).join('/')}`,
    pid: () => server.pid,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** Names are relative to the folder, where the server runs, so that no path needs quoting. */
function settings({ fsync = 'always', maxMemoryBytes = 0 }: ServerOptions): string[] {
  const values = {
    port: '0',
    unixsocket: 'redis.sock',
    unixsocketperm: '700',
    daemonize: 'no',
    logfile: logFile,
    save: '',
    appendonly: 'yes',
    appendfsync: fsync,
    'no-appendfsync-on-rewrite': 'no',
    'aof-load-truncated': 'yes',
    maxmemory: String(maxMemoryBytes),
    'maxmemory-policy': 'noeviction',
  };
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Starts it again each time it ends, later and later while it does not stay up, until it is stopped. */
async function keepRunning(
  folder: string,
  { log, longestDelayMs = 5_000 }: ServerOptions,
  stopping: AbortSignal,
  server: { ended: () => Promise<string>; begin: () => Promise<void> },
): Promise<void> {
  let delayMs = shortestDelayMs;
  for (;;) {
    const began = performance.now();
    const end = await server.ended();
    if (stopping.aborted) return;
    delayMs = performance.now() - began > steadyMs ? shortestDelayMs : Math.min(delayMs * 2, longestDelayMs);
    log.warn('redis-server ended by itself', { end, last_line: await lastLine(folder), delay_ms: delayMs });
    await limitLog(folder);
    // It ends early only because all is stopped.
    await pause(delayMs, undefined, { signal: stopping }).catch(() => {});
    if (stopping.aborted) return;
    await server.begin().then(
      () => log.info('redis-server runs again'),
      // How it ended is seen at the head of the loop.
      () => {},
    );
  }
}

/** A server whose parent was killed needs a moment to end; one that stays belongs to somebody. */
async function waitUntilFree(socket: string): Promise<void> {
  const end = performance.now() + takeOverSeconds * 1000;
  while ((await askServer(socket)) !== 'absent') {
    if (performance.now() > end) throw new Error(`Another redis-server already runs on ${socket}`);
    await pause(50);
  }
}

async function limitLog(folder: string): Promise<void> {
  const path = join(folder, logFile);
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size > longestLogBytes) await rename(path, `${path}.1`);
}

async function lastLine(folder: string): Promise<string> {
  // Without a log there is nothing to tell.
  const text = await readFile(join(folder, logFile), 'utf8').catch(() => '');
  return text.trimEnd().split('\n').at(-1) ?? '';
}
