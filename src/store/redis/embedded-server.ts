import { randomBytes } from 'node:crypto';
import { chmod, readFile, rename, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { keepRunning } from '../../base/child-process.ts';
import type { Log } from '../../base/log.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { writePrivateFile } from '../../base/private-file.ts';
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

const maxSocketBytes = 107;
const logFile = 'redis.log';
/** Other commands of the operator read it, as the same user. */
const passwordFile = 'password';
const maxLogBytes = 1024 * 1024;
const firstDelayMs = 100;
const steadyMs = 10_000;
const takeOverSeconds = 3;
/** Words of redis-server about a file that it does not understand. */
const damagedFile = /append only file|\bAOF\b|RDB reading|loading DB|load DB/i;
/** The file is whole then, but cannot be read or written. */
const systemError =
  /: (Permission denied|No space left on device|Read-only file system|Is a directory|Input\/output error)$/;

export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

/**
 * Starts a redis-server that keeps every change on disk, and keeps it running until it is stopped; it ends with this process
 * at the latest. Resolves once Redis answers, which takes as long as reading its file. Each start makes a new password: a child of
 * trawl that reaches the socket, which Landlock cannot bar, learns nothing there.
 */
export async function startRedis(options: ServerOptions) {
  const folder = resolve(options.folder);
  const socket = join(folder, 'redis.sock');
  if (Buffer.byteLength(socket) > maxSocketBytes) {
    throw new Error(`The path of the data folder is too long for a UNIX socket (${maxSocketBytes} bytes): ${socket}`);
  }
  checkPrograms();
  await makeFolder(folder, 0o700);
  await chmod(folder, 0o700);
  await waitUntilFree(socket);
  await limitLog(folder);

  const password = randomBytes(32).toString('base64url');
  await writePrivateFile(join(folder, passwordFile), `${password}\n`);
  const begin = () => spawnRedis(folder, settings(options), password);
  let server = begin();
  await whenReady(server, socket, password).catch(async (cause) => {
    throw new Error(`${cause.message}: ${explainEnd(await lastLine(folder), folder)}`, { cause });
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
      whenReady(server, socket, password).then(restarted, () => {});
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
    /** URL for `connect`, with the password. */
    url: urlOf(socket, password),
    /** Returns the pid of the present process; a restart changes it. */
    pid: () => server.pid,
    /** Ends the server and waits until it is gone. Further calls return the same promise. */
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** Returns the URL of the server of a folder; `null` when no process answers there. */
export async function findServer(folder: string): Promise<string | null> {
  const socket = join(resolve(folder), 'redis.sock');
  if ((await pingServer(socket)) === 'absent') return null;
  const password = await readFile(join(resolve(folder), passwordFile), 'utf8');
  return urlOf(socket, password.trim());
}

function urlOf(socket: string, password: string): string {
  return `unix://:${password}@${socket.split('/').map(encodeURIComponent).join('/')}`;
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
    // The one that asks for a snapshot is a backup, which waits for no other.
    'repl-diskless-sync-delay': '0',
    maxmemory: String(maxMemoryBytes),
    'maxmemory-policy': 'noeviction',
    // A job's parameters are longer than 64 bytes, beyond which Redis makes a hash table: 1,573 bytes a waiting job, 940 with this.
    'hash-max-listpack-value': '1024',
    // A stream takes this much with its first entry: 16.1 KB an account with one job, 10.0 KB with this, and 37 bytes more a further job.
    'stream-node-max-bytes': '1024',
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

/** Returns why redis-server could not start; its own advice for a damaged file would remove changes that were answered. */
function explainEnd(line: string, folder: string): string {
  const words = line.replace(/^\d+:\w [^#*]*[#*] /, '').replace(/: make a backup of .*$/, '');
  if (!damagedFile.test(words) || systemError.test(words)) return words;
  const advice = 'redis-check-aof --fix would remove every change behind the damage';
  return `${words}. The files of the record in ${folder} are damaged: docs/operate.md says how to recover from that. ${advice}`;
}

async function lastLine(folder: string): Promise<string> {
  // The log is missing when redis-server could not write one.
  const text = await readFile(join(folder, logFile), 'utf8').catch(() => '');
  return text.trimEnd().split('\n').at(-1) ?? '';
}
