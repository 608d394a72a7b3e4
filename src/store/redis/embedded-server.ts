import { chmod, mkdir, readFile, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { keepRunning } from '../../base/child-process.ts';
import type { Log } from '../../base/log.ts';
import { checkPrograms, pingServer, spawnRedis, whenReady } from './redis-process.ts';

export interface ServerOptions {
  readonly folder: string;
  readonly log: Log;
  /** When a change reaches the disk; `always` is before Redis answers. */
  readonly fsync?: 'always' | 'everysec' | 'no';
  readonly maxMemoryBytes?: number;
  /** Longest delay before it is started again, when it ends again and again. */
  readonly maxDelayMs?: number;
  /** Called each time it answers again after it ended by itself. */
  readonly onRestart?: () => void;
}

export interface RedisServer {
  readonly socket: string;
  /** The same as a URL, for `connect`. */
  readonly url: string;
  /** Returns the pid of the present process; a restart changes it. */
  readonly pid: () => number;
  /** Ends the server and waits until it is gone. Further calls return the same promise. */
  readonly stop: () => Promise<void>;
}

const maxSocketBytes = 107;
const logFile = 'redis.log';
const maxLogBytes = 1024 * 1024;
const firstDelayMs = 100;
const steadyMs = 10_000;
const takeOverSeconds = 3;

/**
 * Starts a redis-server that keeps every change on disk, and keeps it running until it is stopped; it ends with this process
 * at the latest. Resolves once Redis answers, which takes as long as reading its file.
 */
export async function startRedis(options: ServerOptions): Promise<RedisServer> {
  const folder = resolve(options.folder);
  const socket = join(folder, 'redis.sock');
  if (Buffer.byteLength(socket) > maxSocketBytes) {
    throw new Error(`The path of the data folder is too long for a UNIX socket (${maxSocketBytes} bytes): ${socket}`);
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
  const restarted = () => {
    options.log.info('redis-server runs again');
    options.onRestart?.();
  };
  const stopping = new AbortController();
  const kept = keepRunning({
    first: server,
    start: () => {
      server = begin();
      // A server that ends before it is ready is logged and started again like any other.
      whenReady(server, socket).then(restarted, () => {});
      return server;
    },
    firstMs: firstDelayMs,
    maxMs: options.maxDelayMs ?? 5_000,
    steadyMs,
    signal: stopping.signal,
    onEnd: async (end, delay_ms) => {
      options.log.warn('redis-server ended by itself', { end, last_line: await lastLine(folder), delay_ms });
      await limitLog(folder);
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

/** Waits while a server whose parent was killed ends; throws when it stays, as then another trawl uses it. */
async function waitUntilFree(socket: string): Promise<void> {
  const end = performance.now() + takeOverSeconds * 1000;
  while ((await pingServer(socket)) !== 'absent') {
    if (performance.now() > end) throw new Error(`Another redis-server already runs on ${socket}`);
    await pause(50);
  }
}

async function limitLog(folder: string): Promise<void> {
  const path = join(folder, logFile);
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size > maxLogBytes) await rename(path, `${path}.1`);
}

async function lastLine(folder: string): Promise<string> {
  // The log is missing when redis-server could not write one.
  const text = await readFile(join(folder, logFile), 'utf8').catch(() => '');
  return text.trimEnd().split('\n').at(-1) ?? '';
}
