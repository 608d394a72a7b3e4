import { spawn, spawnSync } from 'node:child_process';
import { createConnection } from 'node:net';
import type { Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { endChild } from '../../base/child-process.ts';

export type RedisProcess = ReturnType<typeof spawnRedis>;

/** Answer of a Redis to PING: `loading` while it reads its file, `silent` when it listens but does not answer. */
type PingAnswer = 'ready' | 'loading' | 'silent' | 'absent';

const minimumMajor = 7;
const stopMs = 5_000;
const answerMs = 1_000;

export function checkPrograms(): void {
  if (spawnSync('setpriv', ['--version']).error) throw new Error('setpriv cannot be run: install util-linux');
  const { stdout, error } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  if (error) throw new Error(`redis-server cannot be run: install Redis ${minimumMajor}.0 or newer`);
  const [, version = 'unknown'] = /\bv=([\d.]+)/.exec(stdout) ?? [];
  if (!isSupportedVersion(version))
    throw new Error(`redis-server is version ${version}: ${minimumMajor}.0 or newer is needed`);
}

export function isSupportedVersion(version: string): boolean {
  return Number.parseInt(version, 10) >= minimumMajor;
}

/**
 * Starts a redis-server in its folder, with a password that nobody sees in its arguments. It ends with this process, even when that
 * is killed.
 */
export function spawnRedis(folder: string, options: readonly string[], password?: string) {
  // setpriv asks the kernel to send TERM when this process ends. The shell, which runs after that, starts nothing when this
  // process has ended already. Each program replaces the one before it, so the pid stays.
  const start = ['--pdeathsig', 'TERM', 'sh', '-c', 'test "$PPID" = "$0" && exec redis-server "$@"', `${process.pid}`];
  const fromInput = password === undefined ? [] : ['-'];
  const child = spawn('setpriv', [...start, ...fromInput, ...options], {
    cwd: folder,
    // A group of its own: Ctrl-C in a terminal reaches only this process, which ends Redis last.
    detached: true,
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // A process that can open no more files makes a child without pipes, whose error comes a moment later.
  const { stdin }: { readonly stdin?: Writable } = child;
  // EPIPE: it ended before it read its settings, and its end tells why.
  stdin?.on('error', () => {});
  stdin?.end(password === undefined ? '' : `requirepass ${password}\n`);
  /** Resolves with how it ended, in words. */
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `by ${signal}` : `with exit code ${code}`));
    child.once('error', (error) => resolve(`before it began: ${error.message}`));
  });
  /** Ends it, by force if it takes too long, and waits until it is gone. */
  const stop = () => endChild(child, ended, stopMs);
  return { pid: child.pid ?? 0, ended, stop };
}

/** Waits until a server answers PING, however long it reads its file; throws how it ended when it does before that. */
export async function whenReady(server: RedisProcess, socket: string, password?: string): Promise<void> {
  let end: string | undefined;
  void server.ended.then((words) => {
    end = words;
  });
  while ((await pingServer(socket, password)) !== 'ready') {
    if (end !== undefined) throw new Error(`redis-server ended ${end}`);
    await pause(20);
  }
}

/** Asks a server for a sign of life; without its password, one that is there never answers `ready`. */
export function pingServer(socket: string, password?: string): Promise<PingAnswer> {
  return new Promise((resolve) => {
    const wire = createConnection(socket);
    const settle = (answer: PingAnswer): void => {
      wire.destroy();
      resolve(answer);
    };
    wire.setTimeout(answerMs, () => settle('silent'));
    const questions = password === undefined ? ['PING'] : [`AUTH ${password}`, 'PING'];
    wire.once('connect', () => wire.write(questions.map((question) => `${question}\r\n`).join('')));
    let said = '';
    wire.on('data', (piece) => {
      said += piece;
      const answers = said.split('\r\n').slice(0, -1);
      if (answers.length === questions.length) settle(answers.at(-1) === '+PONG' ? 'ready' : 'loading');
    });
    // No process listens, or it ended without an answer.
    wire.on('error', () => settle('absent'));
    wire.once('close', () => settle('absent'));
  });
}
