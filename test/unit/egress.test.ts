import type { Socket } from 'node:net';
import { expect } from 'chai';
import { type ConnectionLimit, type ConnectionLimits, startLimitWatch } from '../../src/egress/connection-limits.ts';
import { readListenAddress } from '../../src/egress/egress.ts';

/** A socket that has read so many bytes more at every look. */
function socketOf(bytesPerLook: number): Socket {
  let bytesRead = 0;
  return {
    bytesWritten: 0,
    get bytesRead() {
      bytesRead += bytesPerLook;
      return bytesRead;
    },
  } as Socket;
}

describe('the watch of connection limits', () => {
  const none: ConnectionLimits = { bytes: 1e9, idleSeconds: 3600, leftSeconds: 3600, totalSeconds: 3600 };
  const rows: [what: string, bytesPerLook: number, limits: Partial<ConnectionLimits>, cut: ConnectionLimit][] = [
    ['nothing moves', 0, { idleSeconds: 0.05 }, 'idle'],
    ['both sides move, for longer than it may be idle', 1, { idleSeconds: 0.05, totalSeconds: 0.3 }, 'time'],
    ['it carries too many bytes', 100, { bytes: 1000 }, 'bytes'],
  ];
  for (const [what, bytesPerLook, limits, cut] of rows) {
    it(`cuts a connection for ${cut} when ${what}`, async () => {
      const watch = startLimitWatch({ ...none, ...limits }, 5);
      const found = await new Promise((resolve) => {
        watch.add(socketOf(bytesPerLook), socketOf(bytesPerLook), resolve);
      });
      watch.close();
      expect(found).to.equal(cut);
    });
  }
});

describe('the address that egress listens on', () => {
  const path = `/${'a'.repeat(106)}`;
  const rows: [text: string, address: object | undefined][] = [
    ['4750', { host: '::', port: 4750 }],
    ['0', { host: '::', port: 0 }],
    ['65535', { host: '::', port: 65_535 }],
    ['65536', undefined],
    ['123456', undefined],
    ['a1', undefined],
    ['1a', undefined],
    ['', undefined],
    ['/run/egress', { path: '/run/egress' }],
    ['run/egress/', undefined],
    [path, { path }],
    [`${path}a`, undefined],
  ];
  for (const [text, address] of rows) {
    it(`${JSON.stringify(text)} is ${address ? 'read' : 'refused'}`, () =>
      expect(readListenAddress(text, '::')).to.deep.equal(address));
  }
});
