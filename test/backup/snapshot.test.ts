import { expect } from 'chai';
import { dumpPayload } from '../../src/store/backup/dump-payload.ts';
import { makeRdbReader, type SnapshotEntry } from '../../src/store/backup/rdb-reader.ts';
import { streamSnapshot } from '../../src/store/backup/snapshot-stream.ts';
import { asBytesOptions, openRedisClient, type RedisClient } from '../../src/store/redis/redis-client.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';

type Command = readonly string[];
const range = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Keys of each kind, small and large, as Redis keeps them in different ways. */
const commands: readonly Command[] = [
  ['SET', 'text', 'x'],
  ['SET', 'empty', ''],
  ['SET', 'long and compressed', 'x'.repeat(70_000)],
  ['SET', 'a key that is long enough to be compressed itself: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'x'],
  ...[0, 1, -1, 127, 128, -129, 32_767, 32_768, 2 ** 31 - 1, 2 ** 31, -(2 ** 31)].map((n) => ['SET', `n${n}`, `${n}`]),
  ...[12, 300, 70_000].map((n) => ['SET', String(n), 'a key that is a number']),
  ['SET', 'ends', 'soon', 'PXAT', '4102444800123'],
  ...range(70).map((n) => ['SET', `size ${n}`, String.fromCharCode(33 + n).repeat(n * 3)]),
  ['RPUSH', 'list', 'a', 'b', '3'],
  ...range(300).map((n) => ['RPUSH', 'long list', `${n}`.repeat(99)]),
  ['SADD', 'numbers', '1', '2', '70000'],
  ['SADD', 'words', 'a', 'b'],
  ...range(300).map((n) => ['SADD', 'many words', `word ${n}`]),
  ['HSET', 'hash', 'a', '1', 'b', '2'],
  ...range(300).map((n) => ['HSET', 'large hash', `field ${n}`, 'y'.repeat(n)]),
  ['ZADD', 'sorted', '1.5', 'a', '-inf', 'b', '+inf', 'c'],
  ...range(300).map((n) => ['ZADD', 'large sorted', `${n / 7}`, `member ${n}`]),
  ...range(300).map((n) => ['XADD', 'stream', `${n + 1}-${n}`, 'a', `${n}`, 'b', 'z'.repeat(n)]),
  ['XDEL', 'stream', '5-4', '6-5'],
  ['XADD', 'emptied', '1-1', 'a', 'b'],
  ['XTRIM', 'emptied', 'MAXLEN', '0'],
  ['XGROUP', 'CREATE', 'stream', 'group', '0'],
  ['XREADGROUP', 'GROUP', 'group', 'one', 'COUNT', '3', 'STREAMS', 'stream', '>'],
];

describe('a snapshot of Redis', () => {
  let redis: TestRedis;
  let client: RedisClient;
  let snapshot: Buffer;
  before(async () => {
    redis = await startTestRedis();
    client = await openRedisClient(redis.url);
    for (const command of commands) await client.sendCommand([...command]);
    const pieces: Buffer[] = [];
    for await (const piece of streamSnapshot(redis.url)) pieces.push(piece);
    snapshot = Buffer.concat(pieces);
  });
  after(async () => {
    client.destroy();
    await redis.stop();
  });

  for (const pieceBytes of [1, 13, 4_096, Number.POSITIVE_INFINITY]) {
    it(`has every value as DUMP answers it, when it is read in pieces of ${pieceBytes} bytes`, async () => {
      const { entries, format } = readIn(snapshot, pieceBytes);
      expect(entries).to.have.length(Number(await client.sendCommand(['DBSIZE'])));
      for (const { key, value } of entries) {
        const dumped = (await client.sendCommand(['DUMP', key], asBytesOptions)) as unknown as Buffer;
        expect(dumpPayload(value, format).equals(dumped), key).to.equal(true);
      }
      const ends = entries.filter(({ expiresAt }) => expiresAt !== null);
      expect(ends.map(({ key, expiresAt }) => [key, expiresAt])).to.deep.equal([['ends', 4102444800123]]);
    });
  }

  it('is refused when it is cut off, goes on behind its end, or is something else', () => {
    for (const end of [0, 5, 9, 100, snapshot.length - 9, snapshot.length - 1]) {
      expect(() => readIn(snapshot.subarray(0, end), 64), `the first ${end}`).to.throw('the snapshot has no end');
    }
    expect(() => readIn(Buffer.concat([snapshot, Buffer.of(0)]), 64)).to.throw('behind its end');
    expect(() => readIn(Buffer.from('this is something else'), 64)).to.throw('no snapshot of Redis');
  });

  it('is refused with a value of a type that is not known', () => {
    const unknown = Buffer.concat([snapshot.subarray(0, 9), Buffer.of(99, 1, 0x61, 1, 0x61, 0xff), Buffer.alloc(8)]);
    expect(() => readIn(unknown, 64)).to.throw('a value of type 99');
  });

  it('says why Redis gives none', async () => {
    await client.sendCommand(['ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@read']);
    const url = redis.url.replace(/^unix:\/\/[^@]*@/, 'unix://reader:secret@');
    const failure = await streamSnapshot(url)
      .next()
      .catch((error: Error) => error.message);
    expect(failure).to.match(/NOPERM.*sync/);
    await client.sendCommand(['ACL', 'SETUSER', 'reader', '+sync', '+replconf']);
    const { done } = await streamSnapshot(url).next();
    expect(done).to.equal(false);
  });
});

function readIn(bytes: Buffer, pieceBytes: number): { entries: SnapshotEntry[]; format: number } {
  const reader = makeRdbReader();
  const entries: SnapshotEntry[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    entries.push(...reader.push(bytes.subarray(at, at + pieceBytes)));
  const end = reader.end();
  return { entries: [...entries, ...end.entries], format: end.format };
}
