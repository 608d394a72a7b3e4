import { type AddressInfo, createConnection, createServer } from 'node:net';
import type { TestRedis } from './redis.ts';

/** A way to a Redis that loses one answer or one command whenever a test wants. */
export interface CutRedis {
  readonly url: string;
  /** The next command with this text that is not refused, as with READONLY or NOSCRIPT, is carried out, and its connection breaks in place of the answer. */
  cutAt(text: string): void;
  /** The next command with this text is not carried out, and its connection breaks. */
  dropAt(text: string): void;
  /** True once that has happened. */
  isCut(): boolean;
  stop(): Promise<void>;
}

export async function startCutRedis(redis: TestRedis): Promise<CutRedis> {
  let cutAt = '';
  let dropAt = '';
  const proxy = createServer((near) => {
    const far = createConnection(redis.server.socket);
    let isCutting = false;
    near.on('data', (bytes) => {
      if (dropAt !== '' && bytes.includes(dropAt)) {
        dropAt = '';
        near.destroy();
        return;
      }
      isCutting ||= cutAt !== '' && bytes.includes(cutAt);
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (!isCutting || bytes.includes('READONLY') || bytes.includes('NOSCRIPT')) return near.write(bytes);
      cutAt = '';
      near.destroy();
    });
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const [, password = ''] = /:([\w-]+)@/.exec(redis.url) ?? [];
  return {
    url: `redis://:${password}@127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    cutAt: (text) => {
      cutAt = text;
    },
    dropAt: (text) => {
      dropAt = text;
    },
    isCut: () => cutAt === '' && dropAt === '',
    stop: () => new Promise((resolve) => proxy.close(() => resolve())),
  };
}
