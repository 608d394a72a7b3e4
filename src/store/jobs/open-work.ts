import type { JobStatus } from '../../model/job.ts';
import type { ActiveJob } from '../../model/preemption.ts';
import { keys, longId } from '../keys.ts';
import { unservedFrom } from '../lua/fair-share.ts';
import { leastOpen } from '../lua/job-index.ts';
import { number, pairs, type RecordStore, run, script, text } from '../script.ts';
import { countActive, workRanges, workShift } from './work-ranges.ts';

const maxOverdue = 10_000;
const waitsForWorker: JobStatus = 'QueuedJob';

/** Ids of the jobs of an account that have not ended, oldest first. */
export async function listOpen(store: RecordStore, account: string): Promise<string[]> {
  return (await store.connection.read(['ZRANGEBYSCORE', keys.jobs(account), leastOpen, '+inf'])).map(longId);
}

/** Returns true for a job that has not ended, also where its own record is lost. */
export async function isOpenWork({ connection }: RecordStore, jobId: string): Promise<boolean> {
  return (await connection.read(['ZSCORE', keys.openWork, jobId])) !== null;
}

/** Returns the account that waits longest, since before a moment, and has no job that runs; `null` for none. */
export async function findUnserved({ connection }: RecordStore, before: number): Promise<string | null> {
  const range = [String(unservedFrom), String(before), 'LIMIT', '0', '1'];
  const [longest] = await connection.read(['ZRANGEBYSCORE', keys.ready, ...range]);
  return longest?.slice(1) ?? null;
}

/** Returns every job that has a slot, the oldest first. */
export async function readActiveJobs({ connection }: RecordStore): Promise<ActiveJob[]> {
  const range = [...workRanges.active, 'WITHSCORES'];
  const taken = Object.entries(pairs(await connection.read(['ZRANGEBYSCORE', keys.openWork, ...range])));
  return Promise.all(
    taken.map(async ([id, at]) => {
      const fields = ['account', 'attempt', 'preempted', 'recorded', 'verdict', 'storing_since'];
      const [account, attempt, preempted, recorded, verdict, storing] = await connection.read([
        'HMGET',
        keys.job(id),
        ...fields,
      ]);
      const isIdle = verdict || storing || !attempt;
      const isLeaving = preempted && preempted === attempt && !storing;
      const runs = preempted ? 'bound' : recorded ? 'recording' : 'free';
      const hold = isLeaving ? 'leaving' : isIdle ? 'idle' : runs;
      const since = { since: Number(at) + workShift, recordedAt: number(recorded) };
      return { id, account: text(account), attempt: number(attempt) ?? 0, hold, ...since };
    }),
  );
}

/**
 * Returns when the oldest job was made that has a slot and whose worker has never run, `null` for none: its pod may wait for a node, a
 * quota or an image for hours, and its caller sees it in the queue.
 */
export async function findOldestUnstarted({ connection }: Pick<RecordStore, 'connection'>): Promise<number | null> {
  const ids = await connection.read(['ZRANGEBYSCORE', keys.openWork, ...workRanges.active]);
  const fields = ids.map((id) => ['HMGET', keys.job(id), 'status', 'created_at'] as const);
  const jobs = (await connection.readAll(fields)) as [status: string | null, createdAt: string | null][];
  const times = jobs.filter(([status]) => status === waitsForWorker).map(([, createdAt]) => Number(createdAt));
  return times.length === 0 ? null : Math.min(...times);
}

/** Returns the jobs that wait longest since before a moment, at most 10,000: those that end make room for the others. */
export function listOverdue(store: RecordStore, before: number): Promise<string[]> {
  const limit = ['LIMIT', '0', String(maxOverdue)];
  return store.connection.read(['ZRANGEBYSCORE', keys.openWork, workRanges.queued[0], String(before), ...limit]);
}

/**
 * Reads the open work of the whole record at one moment, at the same cost however many accounts there are. Answers {'open',
 * queued, active, delayed jobs, calls in hand, webhooks, blocked addresses, time of the oldest queued job or '', of the oldest webhook, since when it is drained or ''}.
 */
const openWorkScript = script('open-work', 'always', ['openWork', 'calls', 'webhooks', 'blocks', 'drain'], [])`
local function oldest(set) return redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2] or '' end
local queued = redis.call('ZCOUNT', openWork, '${workRanges.queued.join("', '")}')
local active = ${countActive}
return { 'open', queued, active, redis.call('ZCARD', openWork) - queued - active, redis.call('ZCARD', calls), redis.call('ZCARD', webhooks),
  redis.call('ZCOUNT', blocks, string.format('(%d', now), '+inf'), queued > 0 and redis.call('ZRANGE', openWork, active, active, 'WITHSCORES')[2] or '', oldest(webhooks),
  redis.call('GET', drain) or '' }
`;

/** Returns the open work of the whole record; times are milliseconds, `null` when there is none. */
export async function readOpenings(store: RecordStore) {
  const [, ...reply] = await run(store, openWorkScript, {});
  const [queued = 0, active = 0, delayed = 0, calls = 0, webhooks = 0, blocked = 0] = reply.slice(0, 6).map(Number);
  // Each open job and each call in hand holds one credit.
  const held = queued + active + delayed + calls;
  const [oldestQueued = null, oldestWebhook = null, drainSince = null] = reply.slice(6).map(number);
  return { queued, active, delayed, calls, held, webhooks, blocked, oldestQueued, oldestWebhook, drainSince };
}
