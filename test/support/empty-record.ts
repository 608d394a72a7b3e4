import { storeOf, type TestStore } from './record.ts';
import { startTestRedis, type TestRedis } from './redis.ts';

/** Starts one Redis for a suite; each of its tests gets it empty, with a store whose clock is its own. */
export function eachWithEmptyRecord(take: (store: TestStore, redis: TestRedis) => void): void {
  let redis: TestRedis;
  before(async () => {
    redis = await startTestRedis();
  });
  after(() => redis.stop());
  beforeEach(async () => {
    await redis.flush();
    take(storeOf(redis.connection), redis);
  });
}
