import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
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
    const forwarder = await startEgressForwarder(
      { host: '127.0.0.1', port: (egress.address() as AddressInfo).port },
      null,
    );
    const sockets = Array.from({ length: 200 }, () =>
      connect(forwarder.port, '127.0.0.1').on('error', () => undefined),
    );
    await until(() => sockets.filter(({ destroyed }) => destroyed).length === 72, 5, '72 are sent away');
    await until(() => taken === 128, 5, '128 are taken');
    for (const socket of sockets) socket.destroy();
    await forwarder.close();
    egress.close();
  });

  it('listens where no service does, because Landlock opens its port at every address', async () => {
    const forwarders = await Promise.all(Array.from({ length: 50 }, () => startEgressForwarder(nowhere, null)));
    const taken = forwarders.map(({ port }) => port);
    await Promise.all(forwarders.map(({ close }) => close()));
    expect(new Set(taken)).to.have.property('size', 50);
    expect(Math.min(...taken)).to.be.least(61_000);
  });
});
