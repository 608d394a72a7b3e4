import type { Caller } from '../../src/store/access/authorize.ts';
import { admitted, anAccount, holder, lead, storeOf, takeOne } from '../support/record.ts';
import type { TestRedis } from '../support/redis.ts';
import { withRedis } from './bench-redis.ts';
import type { Measurement } from './measurement.ts';
import { alternate, inLanes, microsOf, ratioOf, type Workload } from './rounds.ts';

const rounds = 7;
const lanes = 64;
const accounts = 100;
const few = 1_000;
const many = 100_000;
const calls = 500;

/** A take of one job of many against a take of one of few. */
export function compareTakes(): Promise<Measurement> {
  // Nothing is written to disk: the time for that would hide the difference.
  return withRedis({ fsync: 'no' }, (small) =>
    withRedis({ fsync: 'no' }, async (large) => {
      const { ofFew, ofMany } = await alternate(rounds, {
        ofFew: await takes(small, few),
        ofMany: await takes(large, many),
      });
      return {
        what: `take, ${many} jobs : ${few} jobs of ${accounts} accounts`,
        ratio: ratioOf(ofMany, ofFew, 'redisMicros'),
        bound: { most: 1.5 },
        because: `${microsOf(ofMany, 'redisMicros')} : ${microsOf(ofFew, 'redisMicros')} of Redis's processor time`,
      };
    }),
  );
}

/** Takes while at most so many jobs wait; before each stretch those that were taken are replaced. */
async function takes(redis: TestRedis, jobs: number): Promise<Workload> {
  const store = storeOf(redis.connection);
  const callers: Caller[] = [];
  for (let n = 0; n < accounts; n += 1) callers.push(await anAccount(store, { credits: jobs * 2, max_open: jobs * 2 }));
  let missing = jobs;
  const prepare = async (): Promise<void> => {
    await inLanes(lanes, missing, (n) => admitted(store, callers[n % accounts]!));
    missing = calls;
    await lead(store, holder);
  };
  const next = takeOne(store, holder, Number.MAX_SAFE_INTEGER);
  const take = async (): Promise<void> => {
    if ((await next()) === null) throw new Error('No job waits');
  };
  return { redis, calls, prepare, work: () => inLanes(1, calls, take) };
}
