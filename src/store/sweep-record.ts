import type { Endpoint } from '../model/job.ts';
import { releaseCall } from './access/release-call.ts';
import { finishRemovals } from './accounts/remove-account.ts';
import { removeJob } from './jobs/remove-job.ts';
import { keys } from './keys.ts';
import { sweepLines } from './log/trim-lines.ts';
import { rollPeriod } from './money/roll-period.ts';
import type { RecordStore } from './script.ts';

/** How long the record keeps what has ended; milliseconds. */
export interface Lifetimes {
  readonly job: number;
  readonly line: number;
}

/** What one sweep did. */
interface Swept {
  readonly calls: number;
  readonly removals: number;
  readonly periods: number;
  readonly jobs: number;
  readonly lines: number;
}

const pageSize = '100';

/**
 * Removes what is past its lifetime, in bounded steps that may each be repeated: holds of synchronous calls that died,
 * keys of removed accounts, periods of idle accounts, old jobs, old request-log lines, blocks that are over.
 */
export async function sweepRecord(store: RecordStore, lifetimes: Lifetimes): Promise<Swept> {
  const now = store.clock.now();
  await store.connection.send(['ZREMRANGEBYSCORE', keys.blocks, '-inf', String(now)]);
  return {
    calls: await sweepCalls(store, now),
    removals: await finishRemovals(store),
    periods: await sweepPeriods(store, now),
    jobs: await sweepJobs(store, now - lifetimes.job),
    lines: await sweepLines(store, now - lifetimes.line),
  };
}

/** Members of a sorted set that are due, a bounded number at a time, until none is left or none can be worked off. */
async function removeDue(
  store: RecordStore,
  key: string,
  before: number,
  work: (member: string) => Promise<boolean>,
): Promise<number> {
  let done = 0;
  for (;;) {
    const members = (await store.connection.read([
      'ZRANGEBYSCORE',
      key,
      '-inf',
      String(before),
      'LIMIT',
      '0',
      pageSize,
    ])) as string[];
    let moved = 0;
    for (const member of members) if (await work(member)) moved++;
    done += moved;
    if (moved === 0) return done;
  }
}

function sweepCalls(store: RecordStore, now: number): Promise<number> {
  return removeDue(store, keys.calls, now, async (member) => {
    const [account = '', id = ''] = member.split('/');
    // Only downloads are jobs: a synchronous call is always a question for metadata. Its Idempotency-Key ends by itself.
    const endpoint: Endpoint = 'metadata';
    const { done = false } = await releaseCall(store, { id, account, endpoint, repeat: null }, null);
    return done;
  });
}

function sweepPeriods(store: RecordStore, now: number): Promise<number> {
  return removeDue(store, keys.periods, now, (account) => rollPeriod(store, account));
}

function sweepJobs(store: RecordStore, before: number): Promise<number> {
  return removeDue(store, keys.ended, before, async (member) => {
    const [account = '', id = ''] = member.split('/');
    return removeJob(store, account, id, before);
  });
}
