import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type EgressFault, startEgressForwarder } from '../../src/worker/egress-forwarder.ts';
import { aFolder } from '../support/redis.ts';
import { until } from '../support/until.ts';

const nowhere = { host: '127.0.0.1', port: 1 };

describe('The egress forwarder of one worker', () => {
  it('accepts 128 of 200 connections at once and closes the others', async () => {
    let taken = 0;
    const egress = createServer((socket) => {
      socket.on('error', () => undefined);
      taken++;
    }).listen(0, '127.0.0.1');
    await once(egress, 'listening');
    const forwarder = await startEgressForwarder({
      to: { host: '127.0.0.1', port: (egress.address() as AddressInfo).port },
      folder: null,
      ports: 1,
      maxConnections: 128,
    });
    const sockets = Array.from({ length: 200 }, () =>
      connect(forwarder.ports[0] as number, '127.0.0.1').on('error', () => undefined),
    );
    await until(() => sockets.filter(({ destroyed }) => destroyed).length === 72, 5, '72 are sent away');
    await until(() => taken === 128, 5, '128 are taken');
    for (const socket of sockets) socket.destroy();
    await forwarder.close();
    egress.close();
  });

  it('has at most 128 connections at egress, also of clients that have reset theirs, until egress closes them', async () => {
    const open = new Set<Socket>();
    let most = 0;
    // As a source that never answers, which egress leaves only after a while.
    const egress = createServer({ allowHalfOpen: true }, (socket) => {
      most = Math.max(most, open.add(socket).size);
      socket.on('error', () => undefined).once('close', () => open.delete(socket));
      socket.once('data', () => socket.write('x')).resume();
    }).listen(0, '127.0.0.1');
    await once(egress, 'listening');
    const to = { host: '127.0.0.1', port: (egress.address() as AddressInfo).port };
    const forwarder = await startEgressForwarder({ to: to, folder: null, ports: 1, maxConnections: 128 });
    const reset = () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(forwarder.ports[0] as number, '127.0.0.1').on('error', () => undefined);
        socket.once('close', () => resolve(false)).write('x');
        socket.once('data', () => resolve(true) ?? socket.resetAndDestroy());
      });
    const served: boolean[] = [];
    for (let n = 0; n < 300; n++) served.push(await reset());
    expect([most, served.filter(Boolean).length]).to.deep.equal([128, 128]);
    for (const socket of open) socket.destroy();
    await until(reset, 5, 'there is room again');
    await forwarder.close();
    egress.close();
    for (const socket of open) socket.destroy();
  });

  it('listens where no service does, because Landlock opens its port at every address', async () => {
    const forwarders = await Promise.all(
      Array.from({ length: 50 }, () =>
        startEgressForwarder({ to: nowhere, folder: null, ports: 1, maxConnections: 128 }),
      ),
    );
    const taken = forwarders.flatMap(({ ports }) => ports);
    await Promise.all(forwarders.map(({ close }) => close()));
    expect(new Set(taken)).to.have.property('size', 50);
    expect(Math.min(...taken)).to.be.least(61_000);
  });

  it('leaves no port open when another one cannot be opened', async () => {
    const { folder, remove } = aFolder();
    const start = (ports: number) => startEgressForwarder({ to: nowhere, folder, ports, maxConnections: 1 });
    const { close } = await start(1);
    const [taken = ''] = readdirSync(folder);
    await close();
    writeFileSync(join(folder, String(Number(taken) + 1)), '');
    const error = await start(2).catch((reason: unknown) => reason);
    expect(error).to.have.property('code', 'EADDRINUSE');
    expect(readdirSync(folder)).not.to.include(taken);
    remove();
  });

  it('resets the connections of a port at egress when they are ended', async () => {
    const open = new Set<Socket>();
    // As a source that goes on sending after its client has gone.
    const egress = createServer({ allowHalfOpen: true }, (socket) => {
      open.add(socket);
      socket.on('error', () => undefined).once('close', () => open.delete(socket));
      socket.on('data', () => socket.write('y'));
    });
    await once(egress.listen(0, '127.0.0.1'), 'listening');
    const { port } = egress.address() as AddressInfo;
    const { ports, endConnections, close } = await startEgressForwarder({
      to: { host: '127.0.0.1', port },
      folder: null,
      ports: 2,
      maxConnections: 4,
    });
    const sockets = ports.map((own) => connect(own, '127.0.0.1').on('error', () => undefined));
    for (const socket of sockets) socket.write('x');
    await Promise.all(sockets.map((socket) => once(socket, 'data')));
    endConnections(ports[0] as number);
    await until(() => open.size === 1, 5, 'egress has lost the connection of the port');
    expect(sockets[1]).to.have.property('destroyed', false);
    await close();
    egress.close();
  });

  it('lets a process end although connections were ended while their end was on the way', async () => {
    const script = join(import.meta.dirname, '../support/end-while-ending.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [script], {
      timeout: 30_000,
      killSignal: 'SIGKILL',
    });
    expect(stdout).to.equal('closed');
  });

  it('tells egress that takes no connection, or has no resolver, from a source that fails', async () => {
    const answers = [
      ['HTTP/1.1 503 failed_dns\r\n\r\n', 'unserved'],
      ['HTTP/1.1 502 failed_dns\r\n\r\n', null],
      ['HTTP/1.1 503 Service Unavailable\r\n\r\nHTTP/1.1 503 failed_dns\r\n\r\n', null],
      ['', 'silent'],
    ] as const;
    let answer = '';
    const egress = createServer((socket) => void socket.on('error', () => undefined).end(answer));
    await once(egress.listen(0, '127.0.0.1'), 'listening');
    const to = { host: '127.0.0.1', port: (egress.address() as AddressInfo).port };
    const told: unknown[] = [];
    const noteFault = (port: number, fault: EgressFault | null) => told.push([port, fault]);
    const { ports, close } = await startEgressForwarder({ to, folder: null, ports: 1, maxConnections: 9, noteFault });
    const meet = async () => {
      const socket = connect(ports[0] as number, '127.0.0.1').on('error', () => undefined);
      await once(socket.resume(), 'close');
    };
    for (const [text] of answers) {
      answer = text;
      await meet();
    }
    egress.close();
    await once(egress, 'close');
    await meet();
    const faults = [...answers.map(([, fault]) => fault).filter((fault) => fault !== 'silent'), 'unreachable'];
    expect(told).to.deep.equal(faults.map((fault) => [ports[0], fault]));
    await close();
  });

  it('closes a connection when egress, which speaks TLS, is away', async () => {
    const to = { ...nowhere, tls: { caFile: null } };
    const { ports, close } = await startEgressForwarder({ to, folder: null, ports: 1, maxConnections: 1 });
    for (let n = 0; n < 3; n++) {
      const socket = connect(ports[0] as number, '127.0.0.1')
        .on('error', () => undefined)
        .resume();
      await until(() => socket.destroyed || socket.readableEnded, 5, 'the connection ends');
      socket.destroy();
    }
    await close();
  });
});
