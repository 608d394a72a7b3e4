import { expect } from 'chai';
import { keys } from '../../src/store/keys.ts';
import { archivedPartKey, listArchivedParts } from '../../src/store/log/archived-parts.ts';
import { forgetArchived } from '../../src/store/log/forget-archived.ts';
import { freeLineStream } from '../../src/store/log/read-lines.ts';
import type { RecordStore } from '../../src/store/script.ts';
import { storeOf } from '../support/record.ts';
import { startTestRedis } from '../support/redis.ts';

const count = 3_000;
const keyId = 'a'.repeat(24);

describe('an archived part that is forgotten', () => {
  const origin = freeLineStream(keyId);
  const parts = Array.from({ length: count }, (_, n) => ({
    object: archivedPartKey(origin, `${n}-0`),
    last: `${n + 1}-0`,
  }));
  let redis: Awaited<ReturnType<typeof startTestRedis>>;
  beforeEach(async () => {
    redis = await startTestRedis();
    await redis.connection.send(['RPUSH', origin.list, ...parts.map((part) => JSON.stringify(part))]);
  });
  afterEach(() => redis.stop());

  /** Forgets a part; returns the commands that Redis ran on the list, and how many elements were read. */
  const forget = async (n: number) => {
    const store = storeOf(redis.connection);
    let read = 0;
    const counting: RecordStore['connection'] = {
      ...redis.connection,
      read: async (command) => {
        const reply = await redis.connection.read(command);
        read += (reply as unknown[]).length;
        return reply;
      },
    };
    await redis.connection.send(['CONFIG', 'RESETSTAT']);
    const part = {
      member: `free/${keyId}/${n}-0`,
      list: origin.list,
      expiring: keys.days,
      object: parts[n]?.object ?? '',
    };
    await forgetArchived({ ...store, connection: counting }, part);
    const told = String(await redis.connection.send(['INFO', 'commandstats']));
    const commands = [...told.matchAll(/^cmdstat_(l\w+):calls=(\d+)/gm)].map(([, name, calls]) => `${calls} ${name}`);
    return { read, commands: commands.sort() };
  };
  const left = async () => (await listArchivedParts(storeOf(redis.connection), origin)).map(({ object }) => object);

  it('is found among the oldest, however many the key has', async () => {
    expect(await forget(0)).to.deep.equal({ read: 20, commands: ['1 lrange', '1 lrem'] });
    expect(await left()).to.deep.equal(parts.slice(1).map(({ object }) => object));
  });

  it('is found behind younger ones after a clock has gone back', async () => {
    await forget(50);
    expect(await left()).to.deep.equal(parts.filter((_, n) => n !== 50).map(({ object }) => object));
  });
});
