import { randomUUID } from 'node:crypto';
import { openRedisClient } from '../../src/store/redis/redis-client.ts';
import { admitted, storeOf } from '../support/record.ts';
import type { TestRedis } from '../support/redis.ts';
import { aBusyAccount, withRedis } from './bench-redis.ts';
import { openBullQueue } from './bull-queue.ts';
import { recordCommands } from './commands.ts';
import type { Measurement } from './measurement.ts';
import { alternate, besideEachOther, inLanes, microsOf, ratePerSecond, ratioOf, type Workload } from './rounds.ts';

const rounds = 7;
const lanes = 64;
const calls = 2_000;

/** Admissions by one script against the same commands sent one after the other. */
export function compareScript(): Promise<Measurement> {
  return withRedis({}, async (redis) => {
    const ours = await admissions(redis);
    await ours.work();
    const commands = await recordCommands(redis.url, ours.call);
    const client = await openRedisClient(redis.url);
    const sendAll = async (): Promise<void> => {
      for (const command of commands(randomUUID())) await client.sendCommand(command);
    };
    const { script, single } = await alternate(rounds, {
      script: ours,
      single: { redis, calls, work: () => inLanes(lanes, calls, sendAll) },
    });
    client.destroy();
    return {
      what: `admit as one script : its ${commands('').length} commands one by one`,
      ratio: ratioOf(single, script, 'nodeMicros'),
      bound: { least: 2.2 },
      because: `${microsOf(script, 'nodeMicros')} : ${microsOf(single, 'nodeMicros')} of Node's processor time`,
    };
  });
}

/** Admissions of 100 accounts, each with one key, against what a job queue adds. */
export function compareAdmissions(): Promise<Measurement> {
  return withRedis({}, async (redis) => {
    const bull = await openBullQueue(redis.url, lanes);
    const { ours, theirs } = await alternate(rounds, {
      ours: await admissions(redis, 100),
      theirs: { redis, calls, work: () => inLanes(lanes, calls, bull.add) },
    });
    await bull.close();
    return {
      what: `admissions of 100 accounts a second of CPU : BullMQ add, ${lanes} at a time`,
      ratio: ratioOf(theirs, ours, 'bothMicros'),
      bound: { least: 0.75 },
      because: besideEachOther(ours, theirs),
    };
  });
}

/** The cost of having each change on disk before Redis answers. */
export function compareDurability(): Promise<Measurement> {
  return withRedis({ fsync: 'always' }, (strict) =>
    withRedis({ fsync: 'everysec' }, async (loose) => {
      const { always, everysec } = await alternate(rounds, {
        always: await admissions(strict),
        everysec: await admissions(loose),
      });
      return {
        what: 'admissions with appendfsync always : everysec, on this disk',
        ratio: ratioOf(everysec, always, 'micros'),
        because: `${ratePerSecond(always)} : ${ratePerSecond(everysec)}`,
      };
    }),
  );
}

async function admissions(redis: TestRedis, accounts = 1): Promise<Workload & { call: () => Promise<string> }> {
  const store = storeOf(redis.connection);
  const callers = await Promise.all(Array.from({ length: accounts }, () => aBusyAccount(store)));
  let made = 0;
  const call = () => admitted(store, callers[made++ % accounts]!);
  return { redis, calls, call, work: () => inLanes(lanes, calls, call) };
}
