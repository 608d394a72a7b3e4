import type { Job } from '../../src/model/job.ts';
import { takeLead } from '../../src/store/jobs/leadership.ts';
import { settleJob } from '../../src/store/jobs/settle-job.ts';
import { startAttempt } from '../../src/store/jobs/start-attempt.ts';
import { admitted, completed, holder, storeOf, takeJob } from '../support/record.ts';
import type { TestRedis } from '../support/redis.ts';
import type { Measured } from './measured.ts';
import { openPeer } from './peer.ts';
import { alternate, besideEachOther, inLanes, ratioOf, type Stretch } from './rounds.ts';
import { aBusyAccount, withRedis } from './scene.ts';

const rounds = 7;
const lanes = 64;
const calls = 3_000;

/** Settles of jobs that run against what a job queue processes when nothing is to be done. */
export function compareSettles(): Promise<Measured> {
  return withRedis({}, async (redis) => {
    const peer = await openPeer(redis.url, lanes);
    const { ours, theirs } = await alternate(rounds, {
      ours: await settles(redis),
      theirs: { redis, calls, prepare: () => peer.fill(calls), work: () => peer.process(calls) },
    });
    await peer.close();
    return {
      what: `settles a second of CPU : BullMQ, doing nothing, ${lanes} at a time`,
      ratio: ratioOf(theirs, ours, 'bothMicros'),
      bound: { least: 0.8 },
      because: besideEachOther(ours, theirs),
    };
  });
}

async function settles(redis: TestRedis): Promise<Stretch> {
  const store = storeOf(redis.connection);
  const caller = await aBusyAccount(store);
  const job = { account: caller.accountId, key: caller.keyId, endpoint: 'video' as const, attempt: 1 };
  let running: Pick<Job, 'id' | 'account' | 'key' | 'endpoint' | 'attempt'>[] = [];
  const prepare = async (): Promise<void> => {
    await takeLead(store, holder);
    await inLanes(lanes, calls, () => admitted(store, caller));
    running = [];
    await inLanes(lanes, calls, async () => {
      const id = await takeJob(store, holder, Number.MAX_SAFE_INTEGER);
      if (id === null) throw new Error('No job waits');
      await startAttempt(store, holder, { id }, 1, store.clock.now() + 60_000);
      running.push({ id, ...job });
    });
    await takeLead(store, holder);
  };
  const settle = async (n: number): Promise<void> => {
    const { refused } = await settleJob(store, holder, running[n]!, completed);
    if (refused) throw new Error(`A settle answered ${refused}`);
  };
  return { redis, calls, prepare, work: () => inLanes(lanes, calls, settle) };
}
