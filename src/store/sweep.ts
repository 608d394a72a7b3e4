import type { Endpoint } from '../model/job.ts';
import { releaseCall } from './access/admit-call.ts';
import { finishRemovals, listAccounts } from './accounts.ts';
import { listKeys } from './keyring.ts';
import { keys } from './keys.ts';
import { rollPeriod } from './period.ts';
import { run, type Store } from './script.ts';
import { removeJob as removeJobScript } from './scripts/remove-job.ts';
import { trim } from './scripts/trim.ts';

/** How long the record keeps what has ended; milliseconds. */
export interface Lifetimes {
  readonly job: number;
  readonly line: number;
}

/** What one sweep did. */
export interface Swept {
  readonly calls: number;
  readonly removals: number;
  readonly periods: number;
  readonly jobs: number;
  readonly lines: number;
}

const step = '100';

/**
 * Removes what is past its lifetime, in bounded steps that may each be repeated: holds of synchronous calls that died,
 * keys of removed accounts, periods of idle accounts, old jobs, old request-log lines, blocks that are over.
 */
export async function sweep(store: Store, lifetimes: Lifetimes): Promise<Swept> {
  const now = store.clock.now();
  await store.connection.read(['ZREMRANGEBYSCORE', keys.blocks, '-inf', String(now)], keys.blocks);
  return {
    calls: await sweepCalls(store, now),
    removals: await finishRemovals(store),
    periods: await sweepPeriods(store, now),
    jobs: await sweepJobs(store, now - lifetimes.job),
    lines: await sweepLines(store, now - lifetimes.line),
  };
}

/** Members of a sorted set that are due, a bounded number at a time, until none is left or none can be worked off. */
async function workOff(
  store: Store,
  key: string,
  before: number,
  work: (member: string) => Promise<boolean>,
): Promise<number> {
  let done = 0;
  for (;;) {
    const members = (await store.connection.read(
      ['ZRANGEBYSCORE', key, '-inf', String(before), 'LIMIT', '0', step],
      key,
    )) as string[];
    let moved = 0;
    for (const member of members) if (await work(member)) moved++;
    done += moved;
    if (moved === 0) return done;
  }
}

function sweepCalls(store: Store, now: number): Promise<number> {
  return workOff(store, keys.calls, now, async (member) => {
    const [account = '', id = ''] = member.split('/');
    // Only downloads are jobs: a synchronous call is always a question for metadata. Its Idempotency-Key ends by itself.
    const endpoint: Endpoint = 'metadata';
    return releaseCall(store, { id, account, endpoint, repeat: null }, null);
  });
}

function sweepPeriods(store: Store, now: number): Promise<number> {
  return workOff(store, keys.periods, now, (account) => rollPeriod(store, account));
}

function sweepJobs(store: Store, before: number): Promise<number> {
  return workOff(store, keys.ended, before, async (member) => {
    const [account = '', id = ''] = member.split('/');
    const [word] = await run(
      store,
      removeJobScript,
      {
        job: keys.job(id),
        attempts: keys.attempts(id),
        jobs: keys.jobs(account),
        ended: keys.ended,
        webhook: keys.webhook(id),
        webhooks: keys.webhooks,
        deliveries: keys.deliveries(account),
      },
      { accountId: account, jobId: id, before },
    );
    return word !== 'kept';
  });
}

async function sweepLines(store: Store, before: number): Promise<number> {
  let done = 0;
  for (const [, account] of await listAccounts(store)) {
    for (const key of await listKeys(store, account)) {
      for (const lines of [keys.freeLines(key.id), keys.paidLines(key.id)])
        done += await trimLines(store, lines, before);
    }
  }
  return done;
}

async function trimLines(store: Store, lines: string, before: number): Promise<number> {
  let done = 0;
  for (;;) {
    const [, removed] = await run(store, trim, { lines }, { before });
    done += Number(removed);
    if (Number(removed) < Number(step)) return done;
  }
}
