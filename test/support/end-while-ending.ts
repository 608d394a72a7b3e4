import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { startEgressForwarder } from '../../src/worker/egress-forwarder.ts';

/** Ends the connections of a port in the moment in which the end of a client is passed on; prints a word when all is closed. */
const egress = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => {}).on('data', () => socket.write('y'));
});
await once(egress.listen(0, '127.0.0.1'), 'listening');
const { port } = egress.address() as AddressInfo;
const to = { host: '127.0.0.1', port };
const forwarder = await startEgressForwarder({ to, folder: null, ports: 1, maxConnections: 1 });
const [own = 0] = forwarder.ports;
const near = new Promise<Socket>((resolve) => {
  channel('net.server.socket').subscribe((message) => {
    const { socket } = message as { readonly socket: Socket };
    if (socket.localPort === own) resolve(socket);
  });
});
const client = connect(own, '127.0.0.1').on('error', () => {});
client.write('x');
await once(client, 'data');
// In the turn in which the forwarder hears of it, the end is on the way to egress.
(await near).once('end', () => process.nextTick(() => forwarder.endConnections(own)));
client.end();
client.resume();
await new Promise((resolve) => client.once('close', resolve));
await forwarder.close();
egress.close();
process.stdout.write('closed');
