import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { ask, openAddress, openTunnel, startSource, type TestSource } from '../support/egress.ts';
import { aFolder } from '../support/redis.ts';
import { root } from '../support/tree.ts';
import { until } from '../support/until.ts';

interface Role {
  readonly child: ChildProcess;
  readonly lines: Record<string, unknown>[];
  /** Its output beside the log. */
  readonly errors: string[];
  /** Exit code or signal, once it has ended. */
  readonly ended: Promise<number | string>;
  readonly port: number;
  readonly probe: string;
}

describe('the role egress', () => {
  const { folder, remove } = aFolder();
  const path = join(folder, 'egress.sock');
  const roles: Role[] = [];
  let source: TestSource;
  before(async () => {
    source = await startSource((_, response) => response.end('source'));
  });
  afterEach(async () => {
    for (const { child, ended } of roles.splice(0)) {
      child.kill('SIGKILL');
      await ended;
    }
  });
  after(async () => {
    await source.close();
    remove();
  });

  const program = join(root, 'test/support/egress-child.ts');
  const start = (...args: string[]) => run(process.execPath, [program, ...args]);
  const run = async (command: string, args: readonly string[]): Promise<Role> => {
    const env = {
      PATH: process.env.PATH,
      TMPDIR: folder,
      TRAWL_PROBE_PORT: '0',
      TRAWL_EGRESS_ALLOW: `${openAddress}:*`,
    };
    const child = spawn(command, args, { env, stdio: 'pipe' });
    const ended = once(child, 'exit').then(([code, signal]) => code ?? signal);
    const lines: Record<string, unknown>[] = [];
    const errors: string[] = [];
    createInterface(child.stderr!).on('line', (line) => errors.push(line));
    createInterface(child.stdout!).on('line', (line) => lines.push(JSON.parse(line)));
    const find = (text: string) => lines.find((line) => line.text === text);
    // One that does not start has ended instead.
    await until(() => find('egress is ready') ?? child.exitCode !== null, 5, 'it is ready');
    const port = Number(find('egress listens')?.port ?? 0);
    const probe = `http://127.0.0.1:${find('egress is ready')?.probe}`;
    const role = { child, lines, errors, ended, port, probe };
    roles.push(role);
    return role;
  };
  const isGone = async (probe: string) => {
    const error = await fetch(probe).catch((error) => error);
    return error instanceof Error;
  };

  it('serves a port and sockets, is ready, and counts connections by verdict', async () => {
    const role = await start('0', path, `${path}.2`);
    for (const place of [{ host: '127.0.0.1', port: role.port }, { path }, { path: `${path}.2` }]) {
      expect((await ask(place, source.url)).body).to.equal('source');
    }
    expect((await ask({ path }, 'http://127.0.0.3/')).verdict).to.equal('refused_address');
    expect(await (await fetch(`${role.probe}/readyz`)).json()).to.deep.equal({ ready: true });
    const metrics = await (await fetch(`${role.probe}/metrics`)).text();
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(metrics).to.contain(`trawl_build_info{version="${version}",role="egress"} 1\n`);
    expect(role.lines.every((line) => line.role === 'egress')).to.equal(true);
    expect(metrics).to.match(/^trawl_egress_connections_total\{verdict="open"\} 3$/m);
    expect(metrics).to.match(/^trawl_egress_connections_total\{verdict="refused_address"\} 1$/m);
    expect(metrics).to.match(/^trawl_egress_connections_total\{verdict="failed_dns"\} 0$/m);
    const clients = role.lines.filter(({ verdict }) => verdict).map(({ client }) => client);
    expect(clients).to.deep.equal(['127.0.0.1', path, `${path}.2`, path]);
  });

  it('ends on SIGTERM after open tunnels have ended, and removes its sockets', async () => {
    const role = await start(path);
    const { socket } = await openTunnel({ path }, source.authority);
    role.child.kill('SIGTERM');
    await until(() => !existsSync(path), 2, 'nobody is let in any more');
    socket.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(String(await buffer(socket))).to.match(/\r\n\r\nsource$/);
    expect(await role.ended).to.equal(0);
    expect(await isGone(role.probe)).to.equal(true);
  });

  it('cuts the tunnels that are open when the drain is over', async () => {
    const role = await start('--drain', '1', path);
    const { socket } = await openTunnel({ path }, source.authority);
    const begun = performance.now();
    role.child.kill('SIGTERM');
    await once(socket.resume(), 'close');
    expect(performance.now() - begun).to.be.at.least(990);
    expect(await role.ended).to.equal(0);
  });

  it('refuses a drain that is no number of seconds', async () => {
    const words = [join(root, 'src/main.ts'), 'egress', '--at', path, '--drain', '5m'];
    const child = spawn(process.execPath, words, { env: { PATH: process.env.PATH }, stdio: 'pipe' });
    const said = String(await buffer(child.stderr));
    expect(said).to.include('--drain 5m is no number of seconds').and.include('Usage: trawl egress');
    expect(existsSync(path)).to.equal(false);
  });

  it('with a lifeline ends at once when its input closes, in spite of an open tunnel, and not on Ctrl-C', async () => {
    const role = await start('--lifeline', path);
    role.child.kill('SIGINT');
    const { socket } = await openTunnel({ path }, source.authority);
    role.child.stdin!.end();
    await once(socket.resume(), 'close');
    expect(await role.ended).to.equal(0);
    expect(existsSync(path)).to.equal(false);
  });

  it('without a lifeline ends on Ctrl-C, and goes on when its input closes', async () => {
    const role = await start(path);
    role.child.stdin!.end();
    expect((await ask({ path }, source.url)).body).to.equal('source');
    role.child.kill('SIGINT');
    expect(await role.ended).to.equal(0);
  });

  it('starts again over the socket of a killed one', async () => {
    const first = await start(path);
    const { socket } = await openTunnel({ path }, source.authority);
    first.child.kill('SIGKILL');
    await once(socket.resume(), 'close');
    await until(() => source.sockets.every(({ destroyed }) => destroyed), 2, 'the source is left');
    expect(existsSync(path), 'the socket stays behind').to.equal(true);
    await start(path);
    expect((await ask({ path }, source.url)).body).to.equal('source');
  });

  it('does not start when its path is a folder, names the path, and leaves the folder', async () => {
    const role = await start(folder);
    expect(await role.ended).to.equal(1);
    expect(role.errors).to.deep.equal([`The path ${folder} is taken by another program`]);
    expect(existsSync(folder)).to.equal(true);
  });

  it('goes on after it ran out of file descriptors', async () => {
    const few = 'ulimit -n 40; exec "$0" "$@"';
    const role = await run('/bin/sh', ['-c', few, process.execPath, program, path]);
    const asked = Array.from({ length: 60 }, () => openTunnel({ path }, source.authority).catch(() => undefined));
    const tunnels = (await Promise.all(asked)).filter((tunnel) => tunnel !== undefined);
    expect(tunnels.length).to.be.below(60);
    for (const { socket } of tunnels) socket.destroy();
    await until(
      async () => (await ask({ path }, source.url).catch(() => undefined))?.body === 'source',
      3,
      'it serves',
    );
    expect(role.child.exitCode).to.equal(null);
  });

  it('carries 200 MB with less than 150 MiB more memory, while four clients have stopped reading', async () => {
    const bytes = 200_000_000;
    const chunk = Buffer.alloc(1 << 20);
    const large = await startSource((_, response) => {
      response.setHeader('content-length', bytes);
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const role = await start(path);
    const peak = () =>
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${role.child.pid}/status`, 'utf8'))?.[1]) / 1024;
    await ask({ path }, source.url);
    const before = peak();
    const stopped = await Promise.all([1, 2, 3, 4].map(() => openTunnel({ path }, large.authority)));
    for (const { socket } of stopped) socket.pause().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const asked = request({ socketPath: path, path: large.url, agent: false }).end();
    asked.on('error', () => undefined);
    const [answer] = await once(asked, 'response');
    let got = 0;
    answer
      .on('error', () => undefined)
      .on('data', (data: Buffer) => {
        got += data.length;
      });
    await until(() => got >= bytes - chunk.length, 30, 'all of it');
    // Pieces that were sent wait for the collector; one file kept whole would be 190.
    expect(peak() - before, 'MiB more').to.be.below(150);
    for (const { socket } of stopped) socket.destroy();
    asked.destroy();
    await large.close();
  });
});
