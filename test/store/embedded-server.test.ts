import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { connect } from '../../src/store/redis/connection.ts';
import { findServer, type RedisServer, type ServerOptions, startRedis } from '../../src/store/redis/embedded-server.ts';
import { pingServer, spawnRedis, whenReady } from '../../src/store/redis/redis-process.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { aFolder, aLog, patient } from '../support/redis.ts';
import { until } from '../support/until.ts';

const key = '{trawl}:n';

/** Overwrites 40 bytes in the middle of a text. */
function damaged(text: string, by: string): string {
  const at = Math.floor(text.length / 2);
  return text.slice(0, at) + by.repeat(40) + text.slice(at + 40);
}

describe('a redis-server of our own', () => {
  let folder: string;
  let remove: () => void;
  const servers: RedisServer[] = [];
  beforeEach(() => {
    ({ folder, remove } = aFolder());
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
    remove();
  });

  const start = async (options: Partial<ServerOptions> = {}) => {
    const server = await startRedis({ folder, log: aLog().log, ...options });
    servers.push(server);
    return server;
  };

  it('keeps every change, in a folder and behind a socket of its own', async () => {
    const server = await start({ folder: join(folder, 'a folder of 100 % ours? #1'), maxMemoryBytes: 50_000_000 });
    expect(statSync(server.socket).mode & 0o777).to.equal(0o700);
    expect(statSync(join(server.socket, '..')).mode & 0o777).to.equal(0o700);
    const settings = {
      port: '0',
      appendonly: 'yes',
      appendfsync: 'always',
      'no-appendfsync-on-rewrite': 'no',
      'aof-load-truncated': 'yes',
      maxmemory: '50000000',
      'maxmemory-policy': 'noeviction',
      'hash-max-listpack-value': '1024',
      'stream-node-max-bytes': '1024',
      save: '',
    };
    for (const [name, value] of Object.entries(settings)) {
      expect(await ask(server, 'CONFIG', 'GET', name)).to.deep.equal([name, value]);
    }
  });

  it('gets PATH alone of our environment', async () => {
    process.env.ONLY_FOR_TESTS = 'secret';
    const server = await start();
    delete process.env.ONLY_FOR_TESTS;
    expect(readFileSync(`/proc/${server.pid()}/environ`, 'utf8')).not.to.contain('secret');
  });

  it('has ended, and is started again, when this process could open no more files', async () => {
    const script = join(import.meta.dirname, '../support/full-of-files.ts');
    const { stdout } = await promisify(execFile)('prlimit', ['--nofile=100', process.execPath, script, 'redis']);
    expect(stdout).to.equal('before it began: spawn setpriv EMFILE, with exit code 0');
  });

  it('has its data after a restart', async () => {
    const first = await start();
    await ask(first, 'SET', key, 'kept');
    await first.stop();
    expect(isAlive(first.pid())).to.equal(false);
    expect(await ask(await start(), 'GET', key)).to.equal('kept');
  });

  for (const bytes of [1, 7, 40]) {
    it(`starts without the changes in the last ${bytes} bytes that its file has lost`, async () => {
      const first = await start();
      for (let n = 0; n < 5; n += 1) await ask(first, 'INCR', key);
      await first.stop();
      const file = join(folder, 'appendonlydir', 'appendonly.aof.1.incr.aof');
      truncateSync(file, statSync(file).size - bytes);
      const change = '*2\r\n$4\r\nINCR\r\n$9\r\n{trawl}:n\r\n'.length;
      expect(await ask(await start(), 'GET', key)).to.equal(String(5 - Math.ceil(bytes / change)));
    });
  }

  it('D93: is started again when it is killed, with growing delays', async () => {
    let restarts = 0;
    const { log, lines } = aLog();
    const server = await start({ log, onRestart: () => (restarts += 1) });
    for (const round of [1, 2, 3]) {
      const pid = server.pid();
      process.kill(pid, 'SIGKILL');
      await until(() => restarts === round, 5, 'it runs again');
      expect(server.pid()).not.to.equal(pid);
    }
    expect(await ask(server, 'PING')).to.equal('PONG');
    const pauses = lines.map((line) => JSON.parse(line)).flatMap(({ delay_ms }) => delay_ms ?? []);
    expect(pauses).to.deep.equal([100, 200, 400]);
  });

  it('is not started again when it is stopped during the delay', async () => {
    const { log, lines } = aLog();
    const server = await start({ log });
    process.kill(server.pid(), 'SIGKILL');
    await until(() => lines.some((line) => line.includes('ended by itself')), 5, 'its end is noticed');
    await server.stop();
    expect(await pingServer(server.socket)).to.equal('absent');
  });

  it('is killed when it does not end by itself', async () => {
    const server = await start();
    await freezeProcess(server.pid());
    await server.stop();
    expect(isAlive(server.pid())).to.equal(false);
  });

  it('is refused in a folder in which another one runs', async () => {
    const server = await start();
    expect(await failureOf(start())).to.equal(`Another redis-server already runs on ${server.socket}`);
    expect(await ask(server, 'PING')).to.equal('PONG');
  });

  it('is ready only after it has loaded its file', async () => {
    const first = await start();
    const connection = await connect(first.url, { log: aLog().log, ...patient });
    for (let sent = 0; sent < 5_000; sent += 100) {
      await Promise.all(Array.from({ length: 100 }, () => connection.send(['INCR', key])));
    }
    await connection.close();
    await first.stop();
    const slow = ['--key-load-delay', '200', '--appendonly', 'yes', '--loading-process-events-interval-bytes', '1024'];
    const second = spawnRedis(folder, ['--port', '0', '--unixsocket', 'redis.sock', ...slow]);
    const ready = whenReady(second, first.socket);
    await until(async () => (await pingServer(first.socket)) === 'loading', 5, 'it reads its file');
    await ready;
    expect(await pingServer(first.socket)).to.equal('ready');
    await second.stop();
  });

  for (const [title, name, damage] of [
    ['whose file is overwritten in its middle', 'appendonly.aof.1.incr.aof', (text: string) => damaged(text, '\xff')],
    ['whose file has zeros in its middle', 'appendonly.aof.1.incr.aof', (text: string) => damaged(text, '\0')],
    ['whose first snapshot is no snapshot', 'appendonly.aof.1.base.rdb', () => 'nonsense'],
    ['whose list of files is empty', 'appendonly.aof.manifest', () => ''],
    ['whose list of files is no list', 'appendonly.aof.manifest', () => 'nonsense'],
    ['whose file is gone', 'appendonly.aof.1.incr.aof', () => null],
  ] as const) {
    it(`a server ${title} names the folder and the procedure, not the advice of Redis to cut the file`, async () => {
      const first = await start();
      for (let n = 0; n < 20; n += 1) await ask(first, 'INCR', key);
      await first.stop();
      const file = join(folder, 'appendonlydir', name);
      const text = damage(readFileSync(file, 'latin1'));
      if (text === null) rmSync(file);
      else writeFileSync(file, text, 'latin1');
      const said = await failureOf(start());
      const advice =
        `. The files of the record in ${folder} are damaged: docs/operate.md says how to recover from that. ` +
        'redis-check-aof --fix would remove every change behind the damage';
      expect(said)
        .to.match(/^redis-server ended with exit code 1: [A-Z]/)
        .and.satisfy((text: string) => text.endsWith(advice), said)
        .and.not.contain('./redis-check-aof');
    });
  }

  it('names the error of the system when it may not read its file, and nothing of damage', async () => {
    await (await start()).stop();
    const file = join(folder, 'appendonlydir', 'appendonly.aof.manifest');
    rmSync(file);
    mkdirSync(file);
    expect(await failureOf(start())).to.match(/^redis-server ended .*manifest.*Is a directory$/);
  });

  it('is found by the commands of the operator', async () => {
    expect(await findServer(folder)).to.equal(null);
    const { url } = await start();
    expect(await findServer(folder)).to.equal(url);
  });

  it('is refused in a folder whose path is too long for a socket', async () => {
    const long = join(folder, 'x'.repeat(100));
    expect(await failureOf(start({ folder: long }))).to.match(
      /^The path of the data folder is too long for a UNIX socket/,
    );
  });

  it('is refused without setpriv, without redis-server and with one older than 7.0', async () => {
    const path = process.env.PATH;
    try {
      process.env.PATH = folder;
      expect(await failureOf(start())).to.equal('setpriv cannot be run: install util-linux');
      symlinkSync('/usr/bin/setpriv', join(folder, 'setpriv'));
      expect(await failureOf(start())).to.equal('redis-server cannot be run: install Redis 7.0 or newer');
      writeFileSync(join(folder, 'redis-server'), '#!/bin/sh\necho "Redis server v=6.2.14 sha=00000000:0"\n', {
        mode: 0o755,
      });
      expect(await failureOf(start())).to.equal('redis-server is version 6.2.14: 7.0 or newer is needed');
    } finally {
      process.env.PATH = path;
    }
  });

  it('ends when its parent is killed, and another one starts in its folder at once', async () => {
    const parent = startParent(folder);
    const pid = await pidFrom(parent);
    expect(isAlive(pid)).to.equal(true);
    parent.kill('SIGKILL');
    const server = await start();
    expect(server.pid()).not.to.equal(pid);
    expect(isAlive(pid)).to.equal(false);
  });

  it('does not start when its parent was killed before it could be watched', async () => {
    const slow = aFolder();
    const lines = ['#!/bin/sh', 'sleep 0.3', 'PATH=$(echo "$PATH" | cut -d: -f2-)', 'exec setpriv "$@"', ''];
    writeFileSync(join(slow.folder, 'setpriv'), lines.join('\n'), { mode: 0o755 });
    const parent = startParent(folder, 'at-once', slow.folder);
    const pid = await pidFrom(parent);
    expect(isAlive(pid), 'setpriv has not yet begun').to.equal(true);
    await until(() => !isAlive(pid), 5, 'no redis-server is left');
    slow.remove();
  });
});

function startParent(...args: string[]): ChildProcess {
  const file = join(import.meta.dirname, '..', 'support', 'redis-parent.ts');
  return spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function pidFrom(parent: ChildProcess): Promise<number> {
  const [bytes] = await once(parent.stdout!, 'data');
  return Number(bytes);
}

async function ask(server: RedisServer, ...command: string[]): Promise<unknown> {
  const connection = await connect(server.url, { log: aLog().log, ...patient });
  const reply = await connection.send(command);
  await connection.close();
  return reply;
}

function failureOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'it started',
    (error: Error) => error.message,
  );
}

/** Returns true for a running process; an ended one may still be a zombie of its new parent. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    // The process does not exist.
    return false;
  }
}
