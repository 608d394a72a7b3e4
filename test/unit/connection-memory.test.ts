import { Socket } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { rememberLast } from '../../src/api/connection-memory.ts';

type Read = (socket: Socket, text: string | undefined) => object;

const ways: Record<string, (read: Read) => Read> = { remembered: rememberLast, 'read each time': (read) => read };
const requests = fc.array(fc.tuple(fc.nat({ max: 2 }), fc.constantFrom(undefined, '', 'one', 'two')));

for (const [title, way] of Object.entries(ways)) {
  describe(`a text of a connection, ${title}`, () => {
    it('gives what is read of that text and of that connection', () => {
      fc.assert(
        fc.property(requests, (asked) => {
          const sockets = [new Socket(), new Socket(), new Socket()];
          const read = way((socket, text) => ({ socket: sockets.indexOf(socket), text }));
          for (const [socket, text] of asked) expect(read(sockets[socket]!, text)).to.deep.equal({ socket, text });
        }),
      );
    });
  });
}

describe('a text of a connection, remembered', () => {
  it('is read once until the connection has another', () => {
    const seen: (string | undefined)[] = [];
    const read = rememberLast((_: Socket, text: string | undefined) => seen.push(text));
    const socket = new Socket();
    for (const text of ['one', 'one', undefined, undefined, 'one']) read(socket, text);
    expect(seen).to.deep.equal(['one', undefined, 'one']);
  });
});
