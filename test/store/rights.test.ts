import { globSync } from 'node:fs';
import { expect } from 'chai';
import { connect } from '../../src/store/redis/connection.ts';
import { holder, lead, storeOf } from '../support/record.ts';
import { aLog, patient, startTestServer, type TestRecord } from '../support/redis.ts';
import { documentedRights, makeRedisUser, refusedCommands } from '../support/redis-rights.ts';
import { scenarios } from '../support/script-scenarios.ts';
import { read } from '../support/tree.ts';
import { until } from '../support/until.ts';

/** Commands that no text of ours names: the library sends them. */
const ofLibrary = ['select', 'subscribe', 'unsubscribe'];
/** Commands that Redis allows everybody, whatever its rights. */
const free = ['auth'];
/** Commands whose first argument is a right of its own. */
const withSubcommand = ['cluster', 'config', 'pubsub'];

describe('the rights of a user of Redis', () => {
  let redis: TestRecord;
  before(async () => {
    redis = await startTestServer();
  });
  after(() => redis.stop());

  it('are those of the commands that the program sends, and no others', async () => {
    const known = new Set(
      ((await redis.connection.send(['COMMAND', 'LIST'])) as string[]).map((name) => name.toLowerCase()),
    );
    const sent = new Set(ofLibrary);
    for (const file of globSync('src/**/*.ts')) {
      for (const [, name = '', argument = ''] of read(file).matchAll(
        /(?:redis\.p?call\(|\[)\s*'([A-Z]+)'(?:, '([A-Z]+)')?/g,
      )) {
        const right = withSubcommand.includes(name.toLowerCase()) ? `${name}|${argument}` : name;
        if (known.has(name.toLowerCase())) sent.add(right.toLowerCase());
      }
    }
    for (const name of free) expect(sent.delete(name), name).to.equal(true);
    const given = documentedRights().flatMap((word) => (word.startsWith('+') ? [word.slice(1)] : []));
    expect(given.toSorted()).to.deep.equal([...sent].toSorted());
  });

  it('are enough for every script', async () => {
    const connection = await connect(await makeRedisUser(redis), { log: aLog().log, ...patient });
    try {
      for (const [title, prepare] of Object.entries(scenarios)) {
        await redis.flush();
        const store = storeOf(connection);
        await lead(store, holder);
        const { step } = await prepare({ ...store, actor: { via: 'command', who: 'root', from: 'host' } });
        await step(store);
        expect(await refusedCommands(redis), title).to.deep.equal([]);
      }
    } finally {
      await connection.close();
    }
  });

  it('may be those of another user or password while a connection lasts, which logs in again', async () => {
    const [first, other] = [await makeRedisUser(redis), await makeRedisUser(redis, { user: 'other' })];
    const { log, lines } = aLog();
    let url = first;
    const connection = await connect(() => url, { log, ...patient });
    const usersOf = async () => String(await redis.connection.send(['CLIENT', 'LIST'])).match(/user=(?:trawl|other)/g);
    url = other;
    await until(async () => String(await usersOf()) === 'user=other', 5, 'the connection is that of the other user');
    url = other.replace(':first@', ':wrong@');
    await until(
      () => lines.some((line) => line.includes('redis refuses the new user')),
      5,
      'a line about the password',
    );
    url = other.replace(/:\d+$/, ':1');
    await until(() => lines.some((line) => line.includes('needs a restart')), 5, 'a line about the other Redis');
    await lead(storeOf(connection), holder);
    expect(lines.join()).not.to.match(/first|wrong/);
    await connection.close();
  });

  it('reach no key and no channel of others', async () => {
    const connection = await connect(await makeRedisUser(redis), { log: aLog().log, ...patient });
    for (const command of [
      ['GET', 'other'],
      ['SET', 'other', '1'],
      ['PUBLISH', 'other', 'x'],
      ['FLUSHALL'],
      ['ACL', 'WHOAMI'],
    ]) {
      const error = await connection.send(command).catch((caught: Error) => caught);
      expect(String(error), command.join(' ')).to.include('NOPERM');
    }
    await connection.close();
  });
});
