import { once } from 'node:events';
import { expect } from 'chai';
import { dialProxy, startEgress, startRaw } from '../support/egress.ts';
import { until } from '../support/until.ts';

describe('the proxy', () => {
  it('a tunnel whose client sends no more is cut when nothing moves for a few seconds', async () => {
    // A source that does not answer the end of its client.
    const source = await startRaw((socket) => void setImmediate(() => socket.removeAllListeners('end')));
    const egress = await startEgress({ limits: { leftSeconds: 0.3 } });
    const socket = await dialProxy(egress.address);
    socket.write(`CONNECT ${source.authority} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await once(socket, 'data');
    socket.end();
    await until(() => egress.lines.length === 1, 5, 'it is cut');
    expect(egress.lines.map(({ cut, verdict }) => [cut, verdict])).to.deep.equal([['idle', 'limited']]);
    await egress.close();
    await source.close();
  });
});
