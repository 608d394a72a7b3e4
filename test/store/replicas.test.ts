import { randomUUID } from 'node:crypto';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { pollJob } from '../../src/store/access/poll-job.ts';
import { readJob } from '../../src/store/jobs/read-job.ts';
import { connect } from '../../src/store/redis/connection.ts';
import { checkDurability } from '../../src/store/redis/durability.ts';
import { prepareSchema } from '../../src/store/schema.ts';
import { inLanes } from '../bench/rounds.ts';
import { admitted, anAccount, ask, storeOf, type TestStore } from '../support/record.ts';
import { aLog, startTestPair, startTestRedis, type TestPair } from '../support/redis.ts';
import { timed } from '../support/turn-length.ts';
import { until } from '../support/until.ts';

const stalledMs = process.env.ROUNDS ? 3_000 : 1_000;
const admissions = process.env.ROUNDS ? 1_000 : 300;
const plenty = { credits: 1_000_000, max_open: 1_000_000 };

/** A way from a replica to its primary on which nothing moves while it stalls. */
interface StallingWay {
  readonly port: number;
  readonly stall: (isOn: boolean) => void;
  readonly close: () => Promise<void>;
}

async function openWay(to: number): Promise<StallingWay> {
  const sockets = new Set<Socket>();
  let isStalled = false;
  const server = createServer((near) => {
    const far = createConnection(to, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('data', (bytes) => other.write(bytes));
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
      if (isStalled) one.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stall: (isOn) => {
      isStalled = isOn;
      for (const socket of sockets) isOn ? socket.pause() : socket.resume();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('a record with a replica', () => {
  let way: StallingWay;
  let pair: TestPair;
  let store: TestStore;
  beforeEach(async () => {
    pair = await startTestPair(async (port) => {
      way = await openWay(port);
      return way.port;
    });
    await until(() => pair.connection.durability().replicas === 1, 20, 'the replica to be seen');
    store = storeOf(pair.connection);
    await prepareSchema(store);
  });
  afterEach(async () => {
    await pair.stop();
    await way.close();
  });

  const commandCalls = async (name: string) => {
    const told = String(await pair.master.ask('INFO', 'commandstats'));
    return Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(told)?.[1] ?? 0);
  };

  it('loses no admission that was answered when the replica stalls and the primary is killed', async () => {
    const caller = await anAccount(store, plenty);
    const answered: string[] = [];
    let asked = 0;
    const admit = async (id: string) => {
      const answer = await ask(store, caller, { id }).catch(() => null);
      const isAdmitted = answer !== null && 'admitted' in answer;
      if (isAdmitted) answered.push(id);
      return isAdmitted;
    };
    const admitMany = (one: (id: string) => Promise<unknown>) =>
      inLanes(50, admissions / 2, async () => {
        asked++;
        await one(randomUUID());
      });
    // A busy machine may answer one too late: it is asked for again.
    await admitMany((id) => until(() => admit(id), 20, 'an admission'));
    way.stall(true);
    const rest = admitMany(admit);
    await pause(stalledMs);
    process.kill(pair.master.process.pid, 'SIGKILL');
    await rest;
    await way.close();
    await until(
      async () => (await pair.replica.ask('REPLICAOF', 'NO', 'ONE')) === 'OK',
      10,
      'the replica to take over',
    );
    expect(asked).to.equal(admissions);
    expect(answered.length).to.be.at.least(admissions / 2);
    const other = await connect(pair.replica.url, { log: aLog().log });
    const kept = storeOf(other);
    const found = await Promise.all(answered.map((id) => readJob(kept, id)));
    await other.close();
    expect(found.filter((job) => job === null)).to.have.length(0);
  });

  it('answers 503 within 2 s while the replica stalls, a poll all the same, and admits again afterwards', async () => {
    const caller = await anAccount(store, plenty);
    const id = await admitted(store, caller);
    way.stall(true);
    const refused = timed(ask(store, caller).catch((error) => error));
    expect(await pollJob(store, caller, id)).to.have.property('job');
    const { answer, seconds } = await refused;
    expect(answer).to.include({ code: 'unavailable' });
    expect(seconds).to.be.below(2);
    way.stall(false);
    await until(async () => 'admitted' in (await ask(store, caller).catch(() => ({}))), 10, 'an admission');
  });

  it('waits once for many answers', async () => {
    const caller = await anAccount(store, plenty);
    let [scripts, waits] = [0, 0];
    // A busy machine may not answer all of a round in time.
    await until(
      async () => {
        [scripts, waits] = [await commandCalls('evalsha'), await commandCalls('wait')];
        const answers = await Promise.allSettled(Array.from({ length: 300 }, () => admitted(store, caller)));
        return answers.every(({ status }) => status === 'fulfilled');
      },
      10,
      'a round of answers',
    );
    expect((await commandCalls('evalsha')) - scripts).to.be.at.least(300);
    expect((await commandCalls('wait')) - waits).to.be.within(1, 30);
  });

  it('keeps no promise while the primary takes changes without a replica, which strict refuses', async () => {
    expect(await checkDurability(pair.connection, 'strict')).to.deep.equal([]);
    await pair.connection.send(['CONFIG', 'SET', 'min-replicas-to-write', '0']);
    const error = await checkDurability(pair.connection, 'strict').catch((caught: Error) => caught);
    expect(String(error)).to.contain('min-replicas-to-write is 0, set it to 1');
  });
});

describe('a record without a replica', () => {
  it('a record without a replica waits for none', async () => {
    const redis = await startTestRedis();
    const store = storeOf(redis.connection);
    await admitted(store, await anAccount(store, plenty));
    const told = String(await redis.connection.send(['INFO', 'commandstats']));
    await redis.stop();
    expect(told).not.to.contain('cmdstat_wait');
  });
});
