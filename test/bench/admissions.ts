import { randomUUID } from 'node:crypto';
import { openRedisClient } from '../../src/store/redis/redis-client.ts';
import { admitted, storeOf } from '../support/record.ts';
import type { TestRedis } from '../support/redis.ts';
import { recordCommands } from './commands.ts';
import type { Measured } from './measured.ts';
import { openPeer } from './peer.ts';
import { alternate, besideEachOther, inLanes, microsOf, ratePerSecond, ratioOf, type Stretch } from './rounds.ts';
import { aBusyAccount, withRedis } from './scene.ts';

const rounds = 7;
const lanes = 64;
const calls = 2_000;

/** Admissions by one script against the same commands sent one after the other. */
export function compareScript(): Promise<Measured> {
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

/** Admissions against what a job queue adds. */
export function compareAdmissions(): Promise<Measured> {
  return withRedis({}, async (redis) => {
    const peer = await openPeer(redis.url, lanes);
    const { ours, theirs } = await alternate(rounds, {
      ours: await admissions(redis),
      theirs: { redis, calls, work: () => inLanes(lanes, calls, peer.add) },
    });
    await peer.close();
    return {
      what: `admissions a second of CPU : BullMQ add, ${lanes} at a time`,
      ratio: ratioOf(theirs, ours, 'bothMicros'),
      bound: { least: 0.75 },
      because: besideEachOther(ours, theirs),
    };
  });
}

/** What it costs that each change is on disk before Redis answers. */
export function compareDurability(): Promise<Measured> {
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

async function admissions(redis: TestRedis): Promise<Stretch & { call: () => Promise<string> }> {
  const store = storeOf(redis.connection);
  const caller = await aBusyAccount(store);
  const call = () => admitted(store, caller);
  return { redis, calls, call, work: () => inLanes(lanes, calls, call) };
}
