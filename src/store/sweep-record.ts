import type { Endpoint } from '../model/job.ts';
import { releaseCall } from './access/release-call.ts';
import { finishRemovals } from './accounts/remove-account.ts';
import { removeJob } from './jobs/remove-job.ts';
import { keys } from './keys.ts';
import { sweepLines } from './log/trim-lines.ts';
import { rollPeriod } from './money/roll-period.ts';
import { type RecordStore, readDue } from './script.ts';

/** Milliseconds. */
export interface Lifetimes {
  readonly job: number;
  readonly line: number;
}

interface Swept {
  readonly calls: number;
  readonly removals: number;
  readonly periods: number;
  readonly jobs: number;
  readonly lines: number;
}

/**
 * Removes entries past their lifetime in bounded, repeatable steps: expired blocks, holds of synchronous calls whose API
 * died, keys of removed accounts, old jobs and request-log lines; it also rolls the periods of idle accounts.
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

/** Handles the due members of a sorted set, 100 at a time, until none is left or none changes; returns the number done. */
async function removeDue(
  store: RecordStore,
  key: string,
  before: number,
  work: (member: string) => Promise<boolean>,
): Promise<number> {
  let done = 0;
  for (;;) {
    let moved = 0;
    for (const member of await readDue(store, key, before)) if (await work(member)) moved++;
    done += moved;
    if (moved === 0) return done;
  }
}

function sweepCalls(store: RecordStore, now: number): Promise<number> {
  return removeDue(store, keys.calls, now, async (member) => {
    const [accountId = '', id = ''] = member.split('/');
    // Every synchronous call asks for metadata. Its Idempotency-Key expires by itself.
    const endpoint: Endpoint = 'metadata';
    const { done = false } = await releaseCall(store, { id, accountId, endpoint, repeat: null }, null);
    return done;
  });
}

function sweepPeriods(store: RecordStore, now: number): Promise<number> {
  return removeDue(store, keys.periods, now, (account) => rollPeriod(store, account));
}

function sweepJobs(store: RecordStore, before: number): Promise<number> {
  return removeDue(store, keys.ended, before, async (member) => {
    const [accountId = '', id = ''] = member.split('/');
    return removeJob(store, accountId, id, before);
  });
}
