import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Refusal } from '../../src/base/errors.ts';
import { type Connection, connect } from '../../src/store/redis/connection.ts';
import { loginOf } from '../../src/store/redis/redis-client.ts';
import { startCutRedis } from '../support/cut-redis.ts';
import { freezeProcess } from '../support/freeze-process.ts';
import { aLog, memoryFolder, startTestRedis, type TestRedis } from '../support/redis.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

const stoppedSeconds = process.env.ROUNDS ? 10 : 3;
const key = '{trawl}:test';
const raise = (connection: Connection) => connection.send(['INCR', key]);

describe('the connection to redis', () => {
  let redis: TestRedis;
  let connection: Connection;
  before(async () => {
    redis = await startTestRedis({}, memoryFolder, {});
    connection = redis.connection;
  });
  after(() => redis.stop());
  beforeEach(() => redis.flush());

  it('returns plain values', async () => {
    const lua = "return { 1, 'two', { ARGV[2], KEYS[1] }, false }";
    expect(await connection.eval(lua, sha1(lua), [key], ['three'])).to.deep.equal([1, 'two', ['three', key], null]);
    await connection.send(['HSET', key, 'a', '1', 'b', '2']);
    expect(await connection.read(['HGETALL', key])).to.deep.equal(['a', '1', 'b', '2']);
    expect(await connection.read(['GET', `${key}:none`])).to.equal(null);
  });

  it('sends a script by its hash, and its text once when redis does not know it', async () => {
    const lua = "return redis.call('INCR', KEYS[1])";
    const run = () => connection.eval(lua, sha1(lua), [key], []);
    expect(await run()).to.equal(1);
    await connection.send(['SCRIPT', 'FLUSH']);
    const before = connection.calls();
    expect(await run()).to.equal(2);
    expect(await run()).to.equal(3);
    expect(connection.calls() - before, 'EVALSHA, EVAL, EVALSHA').to.equal(3);
  });

  it('sends a batch at once and returns its replies in order', async () => {
    await connection.send(['RPUSH', key, '1', '2']);
    const commands = ['0', '1', '2'].map((n) => ['LINDEX', key, n] as const);
    expect(await connection.readAll(commands)).to.deep.equal(['1', '2', null]);
    expect(await connection.readAll([])).to.deep.equal([]);
  });

  it('throws the error of redis for a wrong command', async () => {
    await connection.send(['SET', key, 'word']);
    const error = await failureOf(raise(connection));
    expect(error).not.to.be.instanceOf(Refusal);
    expect(error.message).to.contain('not an integer');
    expect(await failureOf(connection.readAll([['LINDEX', key, '0']]))).to.have.property('name', error.name);
  });

  it('throws unavailable when redis has no memory left', async () => {
    await connection.send(['CONFIG', 'SET', 'maxmemory', '1']);
    const error = await failureOf(raise(connection));
    await connection.send(['CONFIG', 'SET', 'maxmemory', '0']);
    expectUnavailable(error);
    expect(String(error.cause)).to.contain('OOM');
  });

  it('delivers published messages until the subscription ends, although another listener throws', async () => {
    const heard: string[] = [];
    const publish = (text: string) => connection.send(['PUBLISH', 'news', text]);
    const end = await connection.subscribe('news', (text) => heard.push(text));
    const endFailing = await connection.subscribe('news', () => {
      throw new Error('this listener fails');
    });
    await publish('one');
    await until(() => heard.includes('one'), 2, 'the message arrives');
    await endFailing();
    await end();
    expect(await publish('two'), 'nobody hears it').to.equal(0);
    expect(heard).to.deep.equal(['one']);
  });

  it('subscribes to 2,000 channels again by one command after the connection was lost', async () => {
    const watching = await connect(redis.url, { log: aLog().log });
    const heard: string[] = [];
    const names = Array.from({ length: 2_000 }, (_, n) => `many:${n}`);
    await Promise.all(names.map((name) => watching.subscribe(name, () => heard.push(name))));
    const end = await watching.subscribe('ended', () => {});
    await end();
    await connection.send(['CONFIG', 'RESETSTAT']);
    await connection.send(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
    const isBack = async () => ((await connection.send(['PUBSUB', 'CHANNELS', 'many:*'])) as string[]).length === 2_000;
    await until(isBack, 10, 'every channel is subscribed again');
    const ended = await connection.send(['PUBSUB', 'CHANNELS', 'ended']);
    const [, calls] =
      /cmdstat_subscribe:calls=(\d+)/.exec(String(await connection.send(['INFO', 'commandstats']))) ?? [];
    for (const name of names) await connection.send(['PUBLISH', name, '']);
    await until(() => heard.length === 2_000, 2, 'every listener hears again');
    await watching.close();
    expect(ended, 'a channel that nobody listens to any more').to.deep.equal([]);
    expect(Number(calls), 'SUBSCRIBE commands of all connections that were lost').to.be.within(1, 9);
  });

  it('does not time out a command while this process was busy itself', async () => {
    const before = raise(connection);
    const beBusy = (): void => {
      const end = performance.now() + 1_800;
      while (performance.now() < end);
    };
    beBusy();
    expect(await before).to.equal(1);
    const during = raise(connection);
    await pause(1);
    beBusy();
    expect(await during).to.equal(2);
  });

  it('never repeats a command whose reply was lost', async () => {
    const proxy = await startCutRedis(redis);
    proxy.cutAt('INCR');
    const cut = await connect(proxy.url, { log: aLog().log });
    expectUnavailable(await failureOf(raise(cut)));
    await until(() => cut.ready(), 2, 'the connection is back');
    expect(proxy.isCut()).to.equal(true);
    expect(await cut.read(['GET', key])).to.equal('1');
    await cut.close();
    await proxy.stop();
  });

  it('D69: fails every call within 2 s while redis is stopped, and works within 2 s after that', async () => {
    const heard: string[] = [];
    await connection.subscribe('stopped', (text) => heard.push(text));
    const thaw = await freezeProcess(redis.pid());
    const atOnce = Array.from({ length: 2_000 }, () => timedFailure(raise(connection)));
    const later = [];
    const end = performance.now() + stoppedSeconds * 1000;
    while (performance.now() < end) {
      later.push(timedFailure(raise(connection)));
      await pause(50);
    }
    expect(connection.ready()).to.equal(false);
    thaw();
    await until(() => works(connection), 2, 'redis answers after it continues');
    for (const { seconds, error } of await Promise.all([...atOnce, ...later])) {
      expect(seconds).to.be.below(2);
      if (error) expectUnavailable(error);
    }
    expect((await Promise.all(atOnce)).filter(({ error }) => error)).to.have.length(2_000);
    await until(() => tell(connection, 'stopped', heard), 2, 'the subscription hears again');
  });

  it('refuses a command at once when 20,000 wait for redis', async () => {
    const thaw = await freezeProcess(redis.pid());
    const held = Array.from({ length: 20_000 }, () => timedFailure(raise(connection)));
    const error = await failureOf(raise(connection));
    thaw();
    await Promise.all(held);
    expectUnavailable(error);
    expect(String(error.cause)).to.contain('queue is full');
    await until(() => works(connection), 2, 'redis answers after it continues');
  });

  it('loses no acknowledged write when redis is killed, and reconnects by itself', async () => {
    const heard: string[] = [];
    await connection.subscribe('killed', (text) => heard.push(text));
    const pid = redis.pid();
    const calls: ReturnType<typeof timedFailure>[] = [];
    for (let n = 0; n < 2_000; n += 1) {
      calls.push(timedFailure(raise(connection)));
      if (n === 1_000) process.kill(pid, 'SIGKILL');
      if (n % 50 === 0) await pause(1);
    }
    await until(() => works(connection), 4, 'redis answers after it was killed');
    const results = await Promise.all(calls);
    const acknowledged = results.filter(({ error }) => !error).length;
    expect(Math.max(...results.map(({ seconds }) => seconds))).to.be.below(2);
    expect(acknowledged).to.be.within(1, 1_999);
    expect(Number(await connection.read(['GET', key]))).to.be.within(acknowledged, 2_000);
    expect(redis.pid()).not.to.equal(pid);
    await until(() => tell(connection, 'killed', heard), 2, 'the subscription hears again');
  });

  it('fails within 2 s when nothing listens at the address', async () => {
    const { seconds, error } = await timedFailure(connect('redis://user:hidden@127.0.0.1:1', { log: aLog().log }));
    expectUnavailable(error);
    expect(seconds).to.be.below(2);
    expect(error?.message).to.match(/^Redis cannot be reached at 127\.0\.0\.1:1: .*ECONNREFUSED/);
  });

  it('fails within 2 s when the server does not answer', async () => {
    const thaw = await freezeProcess(redis.pid());
    const { seconds, error } = await timedFailure(connect(redis.url, { log: aLog().log }));
    thaw();
    expectUnavailable(error);
    expect(seconds).to.be.below(2);
    expect(error?.message).to.match(
      /^Redis cannot be reached at \/.*redis\.sock: No answer within 1500 ms: Redis hangs/,
    );
    await until(() => works(connection), 2, 'redis answers after it continues');
  });

  it('throws unavailable while redis refuses its new connections, and works when it takes them again', async () => {
    const other = await connect(redis.url, { log: aLog().log });
    const setPassword = (password: string) => connection.send(['CONFIG', 'SET', 'requirepass', password]);
    const password = loginOf(redis.url).at(-1)!;
    try {
      const id = String(await other.send(['CLIENT', 'ID']));
      await setPassword('another');
      await connection.send(['CLIENT', 'KILL', 'ID', id]);
      let error = new Error('none');
      const isRefused = async () => {
        error = await failureOf(raise(other));
        return /WRONGPASS/.test(`${error} ${error.cause}`);
      };
      await until(isRefused, 20, 'redis refuses a connection');
      expectUnavailable(error);
      expectUnavailable(await failureOf(other.subscribe('news', () => {})));
      await setPassword(password);
      await until(() => other.ready(), 20, 'redis takes the connection');
      expect(await raise(other)).to.equal(1);
    } finally {
      await setPassword(password);
      await other.close();
    }
  });

  it('waits for a server that is late when the process may wait for it', async () => {
    process.kill(redis.pid(), 'SIGSTOP');
    const { log, lines } = aLog();
    const opened = connect(redis.url, { log, openMs: 60_000 });
    await until(() => lines.some((line) => line.includes('redis cannot be reached')), 10, 'it has failed once');
    process.kill(redis.pid(), 'SIGCONT');
    await (await opened).close();
    await until(() => works(connection), 2, 'redis answers after it continues');
  });

  it('lets a running call end on close, and fails later calls', async () => {
    const other = await connect(redis.url, { log: aLog().log });
    const last = raise(other);
    await other.close();
    expect(await last, 'a call that was under way').to.equal(1);
    expectUnavailable(await failureOf(raise(other)));
    expect(other.ready()).to.equal(false);
  });
});

function sha1(lua: string): string {
  return createHash('sha1').update(lua).digest('hex');
}

async function timedFailure(call: Promise<unknown>): Promise<{ seconds: number; error?: Error }> {
  const { answer: error, seconds } = await timed(
    call.then(
      () => undefined,
      (error) => error,
    ),
  );
  return { seconds, ...(error && { error }) };
}

function failureOf(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => expect.fail('the call answered'),
    (error) => error,
  );
}

function expectUnavailable(error: Error | undefined): void {
  expect(error).to.be.instanceOf(Refusal);
  expect(error).to.include({ code: 'unavailable' });
  expect(error?.cause).to.be.instanceOf(Error);
}

async function works(connection: Connection): Promise<boolean> {
  return connection.send(['PING']).then(
    () => true,
    () => false,
  );
}

/** Publishes until it is heard. */
async function tell(connection: Connection, channel: string, heard: string[]): Promise<boolean> {
  await connection.send(['PUBLISH', channel, 'hello']);
  return heard.includes('hello');
}
