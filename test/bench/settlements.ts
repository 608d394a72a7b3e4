import type { Job } from '../../src/model/job.ts';
import type { EndingJob } from '../../src/store/jobs/end-job.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { aDownload, admitted, completed, holder, lead, storeOf, takeJob } from '../support/record.ts';
import type { TestRedis } from '../support/redis.ts';
import { aBusyAccount, withRedis } from './bench-redis.ts';
import { openBullQueue } from './bull-queue.ts';
import type { Measurement } from './measurement.ts';
import { alternate, besideEachOther, inLanes, ratioOf, type Workload } from './rounds.ts';

const rounds = 7;
const lanes = 64;
const calls = 3_000;

/** Settles of jobs that run against what a job queue processes when nothing is to be done. */
export function compareSettles(): Promise<Measurement> {
  return withRedis({}, async (redis) => {
    const bull = await openBullQueue(redis.url, lanes);
    const { ours, theirs } = await alternate(rounds, {
      ours: await settles(redis),
      theirs: { redis, calls, prepare: () => bull.fill(calls), work: () => bull.process(calls) },
    });
    await bull.close();
    return {
      what: `settles a second of CPU : BullMQ, doing nothing, ${lanes} at a time`,
      ratio: ratioOf(theirs, ours, 'bothMicros'),
      bound: { least: 0.8 },
      because: besideEachOther(ours, theirs),
    };
  });
}

/** Ends jobs that run, so many at a time. */
export async function settles(redis: TestRedis): Promise<Workload> {
  const store = storeOf(redis.connection);
  const caller = await aBusyAccount(store);
  const job = {
    ...{ account: caller.accountId, key: caller.keyId, attempt: 1, webhook_url: null, webhook_authorization: null },
    ...{ endpoint: aDownload.endpoint, path: aDownload.path, args: aDownload.args, trace: null },
  };
  let running: (EndingJob & Pick<Job, 'attempt'>)[] = [];
  const prepare = async (): Promise<void> => {
    await lead(store, holder);
    await inLanes(lanes, calls, () => admitted(store, caller));
    running = [];
    await inLanes(lanes, calls, async () => {
      const id = await takeJob(store, holder, Number.MAX_SAFE_INTEGER);
      if (id === null) throw new Error('No job waits');
      await startAttempt(store, holder, { id }, 1);
      running.push({ id, ...job });
    });
    await lead(store, holder);
  };
  const settle = async (n: number): Promise<void> => {
    const { refused } = await settleJob(store, holder, running[n]!, completed);
    if (refused) throw new Error(`A settle answered ${refused}`);
  };
  return { redis, calls, prepare, work: () => inLanes(lanes, calls, settle) };
}
