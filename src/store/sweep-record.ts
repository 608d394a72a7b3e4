import { isRefusal } from '../base/errors.ts';
import type { Endpoint } from '../model/job.ts';
import { forgetBlocks, forgetFailures } from './access/count-auth-failure.ts';
import { maxHoldMs, releaseExpiredCall } from './access/release-call.ts';
import { tellExpiry } from './accounts/key-expiry.ts';
import { finishRemovals } from './accounts/remove-account.ts';
import { endBatch } from './batches/end-batch.ts';
import { readBatch } from './batches/read-batch.ts';
import { removeBatch } from './batches/remove-batch.ts';
import { removeJob } from './jobs/remove-job.ts';
import { keys, longId } from './keys.ts';
import { sweepLines } from './log/trim-lines.ts';
import { maxMailAgeMs, takeMail } from './mail/take-mail.ts';
import { maxPeriodMs, returnPeriod } from './money/return-period.ts';
import { rollPeriod } from './money/roll-period.ts';
import { readDue } from './redis/read-due.ts';
import type { RecordStore } from './script.ts';

/** Longer than the doubling of blocks is remembered. */
const failureMs = 2 * 86_400_000;

/** Milliseconds. */
export interface Lifetimes {
  readonly job: number;
  readonly line: number;
}

interface SweepOptions {
  /** Called with each failure; the rest goes on unless it throws. */
  readonly report: (error: unknown) => void;
  /** Asked before each entry; false leaves the rest for the next sweep. */
  readonly goOn: () => boolean;
}

/**
 * Removes entries past their lifetime in bounded, repeatable steps, and does what is due for accounts without traffic: rolls their
 * billing periods, mails that a key expires, ends batches without an open job. A step that fails is reported and stops no other.
 */
export async function sweepRecord(
  store: RecordStore,
  lifetimes: Lifetimes,
  options: SweepOptions = { report: rethrow, goOn: () => true },
) {
  const now = store.clock.now();
  const attempt = (work: () => Promise<number>): Promise<number> =>
    work().catch((error) => {
      options.report(error);
      return 0;
    });
  return {
    blocks: await attempt(() => forgetBlocks(store)),
    failures: await attempt(() => forgetFailures(store, failureMs)),
    calls: await attempt(() => sweepCalls(store, now, options)),
    removals: await attempt(() => finishRemovals(store, options.report)),
    periods: await attempt(() => sweepPeriods(store, now, options)),
    // Before the removals, which may be millions after a shorter lifetime was set: a webhook waits for this.
    endedBatches: await attempt(() =>
      handleDue(store, { key: keys.openBatches, before: now }, options, (id) => endBatch(store, id)),
    ),
    jobs: await attempt(() => sweepJobs(store, lifetimes.job, options)),
    batches: await attempt(() => sweepBatches(store, lifetimes.job, options)),
    lines: await attempt(() => sweepLines(store, lifetimes.line)),
    expiring: await attempt(() =>
      handleDue(store, { key: keys.expiringKeys, before: now }, options, (key) => tellExpiry(store, key)),
    ),
    mails: await attempt(() => sweepMails(store, now, options)),
  };
}

function rethrow(error: unknown): never {
  throw error;
}

/** Members of a sorted set whose score is from `from`, if given, and not after `before`, if given. */
interface DueMembers {
  readonly key: string;
  readonly before?: number;
  readonly from?: number;
}

/** Handles each due member of a sorted set once; returns how many of them changed. One that fails is reported and stops no other. */
async function handleDue(
  store: RecordStore,
  { key, before = Number.MAX_SAFE_INTEGER, from }: DueMembers,
  { report, goOn }: SweepOptions,
  work: (member: string) => Promise<boolean>,
): Promise<number> {
  let done = 0;
  for (let kept = 0; ; ) {
    const page = await readDue(store, key, before, kept, from);
    if (page.length === 0) return done;
    for (const member of page) {
      if (!goOn()) return done;
      const moved = await work(member).catch((error) => {
        // While Redis is away each of them would fail.
        if (isRefusal(error, 'unavailable')) throw error;
        report(error);
        return false;
      });
      if (moved) done++;
      else kept++;
    }
  }
}

async function sweepCalls(store: RecordStore, now: number, options: SweepOptions): Promise<number> {
  const release = (member: string) => {
    const [accountId = '', id = ''] = member.split('/');
    // Every synchronous call asks for metadata. Its Idempotency-Key expires by itself.
    const endpoint: Endpoint = 'metadata';
    return releaseExpiredCall(store, { id, accountId, endpoint, repeat: null });
  };
  const key = keys.calls;
  const released = await handleDue(store, { key, before: now }, options, release);
  // A hold that ends later than any may was taken while the clock of Redis was ahead.
  return released + (await handleDue(store, { key, from: now + maxHoldMs + 1 }, options, release));
}

async function sweepPeriods(store: RecordStore, now: number, options: SweepOptions): Promise<number> {
  const key = keys.periods;
  const rolled = await handleDue(store, { key, before: now }, options, (account) => rollPeriod(store, account));
  // A period that ends later than any may was begun while the clock of Redis was ahead.
  const ahead = { key, from: now + maxPeriodMs + 1 };
  return rolled + (await handleDue(store, ahead, options, (account) => returnPeriod(store, account)));
}

/** Without a mail server nobody takes mails. */
function sweepMails(store: RecordStore, now: number, options: SweepOptions): Promise<number> {
  const old = { key: keys.outboxDue, before: now - maxMailAgeMs };
  return handleDue(store, old, options, async (id) => (await takeMail(store, id, 0)) === 'given_up');
}

function sweepBatches(store: RecordStore, ageMs: number, options: SweepOptions): Promise<number> {
  const old = { key: keys.endedBatches, before: store.clock.now() - ageMs };
  return handleDue(store, old, options, (id) => removeBatch(store, id, ageMs));
}

/** Jobs that may have files stay until these are gone, and those of an open batch until it has counted them. */
async function sweepJobs(store: RecordStore, ageMs: number, options: SweepOptions): Promise<number> {
  const before = store.clock.now() - ageMs;
  const counted = await jobsOfOpenBatches(store, before);
  const remove = async (jobId: string) => !counted.has(jobId) && removeJob(store, jobId, ageMs);
  return handleDue(store, { key: keys.ended, before, from: 0 }, options, (member) => remove(longId(member)));
}

/** Returns the jobs of all open batches that began before a time: no other has a job that ended before it. */
async function jobsOfOpenBatches(store: RecordStore, before: number): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const id of await store.connection.read(['ZRANGEBYSCORE', keys.openBatches, '-inf', String(before)])) {
    for (const jobId of (await readBatch(store, id))?.jobIds ?? []) found.add(jobId);
  }
  return found;
}
