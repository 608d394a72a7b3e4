import { spawn, spawnSync } from 'node:child_process';
import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** One running redis-server. */
export interface RedisProcess {
  readonly pid: number;
  /** How it ended, in words, once it has. */
  readonly ended: Promise<string>;
  /** Ends it, by force if it takes too long, and waits until it is gone. */
  stop(): Promise<void>;
}

/** What a Redis says to PING: `loading` while it reads its file, `silent` when it listens but does not answer. */
export type Answer = 'ready' | 'loading' | 'silent' | 'absent';

const minimumMajor = 7;
const stopSeconds = 5;
const answerSeconds = 1;

/** Throws a sentence unless the programs that this needs are installed. */
export function checkPrograms(): void {
  if (spawnSync('setpriv', ['--version']).error) throw new Error('setpriv cannot be run: install util-linux');
  const { stdout, error } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  if (error) throw new Error(`redis-server cannot be run: install Redis ${minimumMajor}.0 or newer`);
  const [, version = 'unknown'] = /\bv=([\d.]+)/.exec(stdout) ?? [];
  if (!isRecent(version)) throw new Error(`redis-server is version ${version}: ${minimumMajor}.0 or newer is needed`);
}

/** Whether a Redis of this version can keep the record. */
export function isRecent(version: string): boolean {
  return Number.parseInt(version, 10) >= minimumMajor;
}

/** Starts a redis-server in its folder. It ends with this process, even when that is killed. */
export function spawnRedis(folder: string, options: readonly string[]): RedisProcess {
  // The kernel sends TERM only if we end after setpriv has asked for it. The shell comes after that: it sees whether we had
  // ended before, and then starts nothing. Each step replaces the one before it, so the pid stays.
  const start = ['--pdeathsig', 'TERM', 'sh', '-c', 'test "$PPID" = "$0" && exec redis-server "$@"', `${process.pid}`];
  const child = spawn('setpriv', [...start, ...options], {
    cwd: folder,
    // In a group of its own: Ctrl-C in a terminal reaches us alone, and we end Redis when it is no longer needed.
    detached: true,
    env: { PATH: process.env.PATH },
    stdio: 'ignore',
  });
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `by ${signal}` : `with exit code ${code}`));
    child.once('error', (error) => resolve(`before it began: ${error.message}`));
  });
  const stop = async (): Promise<void> => {
    const force = setTimeout(() => child.kill('SIGKILL'), stopSeconds * 1000);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(force);
  };
  return { pid: child.pid ?? 0, ended, stop };
}

/** Waits until a server answers PING, however long it reads its file; throws how it ended when it does before that. */
export async function whenReady(server: RedisProcess, socket: string): Promise<void> {
  let end: string | undefined;
  void server.ended.then((words) => {
    end = words;
  });
  while ((await askServer(socket)) !== 'ready') {
    if (end !== undefined) throw new Error(`redis-server ended ${end}`);
    await pause(20);
  }
}

/** Asks whoever listens on a UNIX socket for a PONG. */
export function askServer(socket: string): Promise<Answer> {
  return new Promise((resolve) => {
    const wire = createConnection(socket);
    const settle = (answer: Answer): void => {
      wire.destroy();
      resolve(answer);
    };
    wire.setTimeout(answerSeconds * 1000, () => settle('silent'));
    wire.once('connect', () => wire.write('PING\r\n'));
    wire.once('data', (reply) => settle(reply.toString().startsWith('+PONG') ? 'ready' : 'loading'));
    // Nobody listens, or it has gone away without an answer.
    wire.on('error', () => settle('absent'));
    wire.once('close', () => settle('absent'));
  });
}
