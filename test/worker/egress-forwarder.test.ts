import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { startEgressForwarder } from '../../src/worker/egress-forwarder.ts';
import { until } from '../support/until.ts';

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
});
