import { randomUUID } from 'node:crypto';
import { admitCall } from '../../src/store/access/admit-call.ts';
import { admitJoined } from '../../src/store/access/join-calls.ts';
import { openRedisClient } from '../../src/store/redis/redis-client.ts';
import { makeRandom } from '../support/random.ts';
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

/** Admissions of so many accounts, each with one key, against what a job queue adds. */
export function compareAdmissions(accounts: number): Promise<Measurement> {
  return withRedis({}, async (redis) => {
    const bull = await openBullQueue(redis.url, lanes);
    const { ours, theirs } = await alternate(rounds, {
      ours: await admissions(redis, { accounts }),
      theirs: { redis, calls, work: () => inLanes(lanes, calls, bull.add) },
    });
    await bull.close();
    return {
      what: `admissions of ${accounts === 1 ? 'one key' : `${accounts} keys`} a second of CPU : BullMQ add, ${lanes} at a time`,
      ratio: ratioOf(theirs, ours, 'bothMicros'),
      bound: { least: 0.75 },
      because: besideEachOther(ours, theirs),
    };
  });
}

/** Calls of one key in one turn, joined, against each one alone. */
export function compareJoining(what: string, mix: Mix, bound?: Measurement['bound']): Promise<Measurement> {
  return withRedis({}, async (redis) => {
    const { joined, single } = await alternate(rounds, {
      joined: await admissions(redis, { ...mix, admit: admitJoined }),
      single: await admissions(redis, { ...mix, admit: admitCall }),
    });
    return {
      optimisation: 'src/store/access/join-calls.ts',
      what: `admissions of ${what}, joined : one by one, CPU`,
      ratio: ratioOf(joined, single, 'bothMicros'),
      ...(bound && { bound }),
      because: besideEachOther(joined, single),
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

/** How calls spread over accounts with one key each. */
interface Mix {
  readonly accounts?: number;
  /** The account of rank k makes 1 / k as many calls as the first one (Zipf's law), else all make as many. */
  readonly isSkewed?: boolean;
  readonly admit?: typeof admitCall;
}

async function admissions(
  redis: TestRedis,
  { accounts = 1, isSkewed = false, admit = admitJoined }: Mix = {},
): Promise<Workload & { call: () => Promise<string> }> {
  const store = storeOf(redis.connection);
  const ranks = isSkewed ? drawSkewed(accounts) : Array.from({ length: accounts }, (_, n) => n);
  const callers = await Promise.all(Array.from({ length: accounts }, () => aBusyAccount(store)));
  let made = 0;
  const call = () => admitted(store, callers[ranks[made++ % ranks.length]!]!, {}, admit);
  return { redis, calls, call, work: () => inLanes(lanes, calls, call) };
}

/** Returns a rank from 0 up for each call. */
function drawSkewed(accounts: number): number[] {
  const random = makeRandom('skewed');
  const shares = Array.from({ length: accounts }, (_, n) => 1 / (n + 1));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return Array.from({ length: calls }, () => {
    let rest = random() * total;
    return shares.findIndex((share) => {
      rest -= share;
      return rest <= 0;
    });
  });
}
