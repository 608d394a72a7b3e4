import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect } from 'chai';
import { startEgressForwarder } from '../../src/worker/egress-forwarder.ts';
import { until } from '../support/until.ts';

const nowhere = { host: '127.0.0.1', port: 1 };

describe('The egress forwarder of one worker', () => {
  it('accepts 128 of 200 connections at once and closes the others', async () => {
    let taken = 0;
    const egress = createServer(() => {
      taken++;
    }).listen(0, '127.0.0.1');
    await once(egress, 'listening');
    const forwarder = await startEgressForwarder({
      to: { host: '127.0.0.1', port: (egress.address() as AddressInfo).port },
      path: null,
      ports: 1,
      most: 128,
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
    const forwarder = await startEgressForwarder({ to: to, path: null, ports: 1, most: 128 });
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
      Array.from({ length: 50 }, () => startEgressForwarder({ to: nowhere, path: null, ports: 1, most: 128 })),
    );
    const taken = forwarders.flatMap(({ ports }) => ports);
    await Promise.all(forwarders.map(({ close }) => close()));
    expect(new Set(taken)).to.have.property('size', 50);
    expect(Math.min(...taken)).to.be.least(61_000);
  });
});
