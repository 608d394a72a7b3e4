import type { ServerResponse } from 'node:http';
import { CountsByName } from '../base/counts.ts';
import { refuse } from '../base/errors.ts';
import { isEnded, type Job } from '../model/job.ts';
import type { QueuePosition } from '../model/job-json.ts';
import { mayTakeSlot } from '../model/slot-share.ts';
import { markWatched } from '../store/jobs/mark-watched.ts';
import { readJob, readPositions } from '../store/jobs/read-job.ts';
import { channels } from '../store/keys.ts';
import type { RecordStore } from '../store/script.ts';
import { onLeave } from './on-leave.ts';
import { rateSentence } from './reply.ts';

/** A job as its watchers see it; `position` while it is queued. */
export interface WatchedJob {
  readonly job: Job;
  readonly position: QueuePosition | null;
}

/** A subscription to the changes of one job. */
export interface JobWatch {
  /** Returns the job after its last change, `null` when its record is gone. All watches of a job share one read per change. */
  read(): Promise<WatchedJob | null>;
  /** Resolves at the next change, at once when one came since the last call, or after this time. */
  changed(maxMs?: number): Promise<void>;
  close(): void;
}

/** Watches a job that was just read: what the watch reads is never older. */
export type WatchJob = (job: Pick<Job, 'id' | 'account' | 'revision'>) => Promise<JobWatch>;

interface FollowedJob {
  readonly first: Job;
  /** Answer to the caller who waits. */
  readonly res: ServerResponse;
  readonly seconds: number;
  /** Aborted when the caller gives up. */
  readonly signal?: AbortSignal;
}

interface WatchOptions {
  /** A watched job counts as changed after this time, in case a hint was lost. */
  readonly rereadMs: number;
  /** Aborted when the process stops: then all watches wake up. */
  readonly draining: AbortSignal;
}

const maxWatches = 10_000;
const maxOfAccount = 100;
const retrySeconds = 5;

/** Returns a function that watches jobs, at most 100 at once for each account, streams and waiting polls together. */
export function makeJobWatches(store: RecordStore, { rereadMs, draining }: WatchOptions): WatchJob {
  const subscriptions = new Map<string, Subscription>();
  const counts = new CountsByName();
  let open = 0;
  draining.addEventListener('abort', () => {
    for (const { hints } of subscriptions.values()) for (const hint of hints) hint();
  });
  const count = (account: string, change: 1 | -1) => {
    open += change;
    counts.change(account, change);
  };

  return async ({ id, account, revision }) => {
    if (draining.aborted || open >= maxWatches) throw refuse('unavailable');
    const ofAccount = counts.of(account);
    if (ofAccount >= maxOfAccount || !mayTakeSlot(ofAccount, maxWatches - open)) {
      throw refuse('rate_limited', rateSentence('waiting-calls'), retrySeconds);
    }
    count(account, 1);
    const subscription = subscriptions.get(id) ?? subscribe(store, id, rereadMs);
    subscriptions.set(id, subscription);
    const { hints, read, opened } = subscription;
    const { hint, changed } = makeFlag();
    hints.add(hint);
    const close = () => {
      // Nothing comes any more, so nobody may wait for it.
      hint();
      if (!hints.delete(hint)) return;
      count(account, -1);
      if (hints.size > 0) return;
      subscriptions.delete(id);
      subscription.end();
    };
    await opened.catch((error) => {
      close();
      throw error;
    });
    return { read: () => read(revision), changed, close };
  };
}

/**
 * Reads a job at each change, and calls `onSeen` with it, until it has ended, the time is over, its caller has gone or the process stops.
 * Returns what was read last, `null` when the record of the job is gone.
 */
export async function followJob(
  { watchJob, draining }: { readonly watchJob: WatchJob; readonly draining: AbortSignal },
  { first, res, seconds, signal }: FollowedJob,
  onSeen: (watched: WatchedJob) => void = () => {},
): Promise<WatchedJob | null> {
  const watch = await watchJob(first);
  const forget = onLeave(res, watch.close);
  signal?.addEventListener('abort', watch.close, { once: true });
  const end = performance.now() + seconds * 1000;
  try {
    for (;;) {
      const watched = await watch.read();
      if (watched === null) return null;
      onSeen(watched);
      const leftMs = end - performance.now();
      const isOver = leftMs <= 0 || res.destroyed || signal?.aborted || draining.aborted;
      if (isOver || isEnded(watched.job.status)) return watched;
      await watch.changed(leftMs);
    }
  } finally {
    signal?.removeEventListener('abort', watch.close);
    forget();
    watch.close();
  }
}

/** One Redis subscription and one read for all watches of a job. */
type Subscription = ReturnType<typeof subscribe>;

function subscribe(store: RecordStore, jobId: string, rereadMs: number) {
  const hints = new Set<() => void>();
  let latest: Promise<WatchedJob | null> | null = null;
  let reread: NodeJS.Timeout | undefined;
  const change = () => {
    latest = null;
    for (const hint of hints) hint();
  };
  const readAnew = () => {
    clearTimeout(reread);
    reread = setTimeout(change, rereadMs).unref();
    const reading = readWatched(store, jobId);
    // The next watch reads again instead of getting the same error.
    reading.catch(() => {
      if (latest === reading) latest = null;
    });
    return reading;
  };
  const opened = openWatch(store, jobId, change);
  return {
    hints,
    opened,
    /** Returns the last read, or a new one when that is older than the given revision, as after a hint that was lost. */
    read: async (leastRevision: number) => {
      latest ??= readAnew();
      const shared = latest;
      const seen = await shared;
      if (seen === null || seen.job.revision >= leastRevision) return seen;
      if (latest === shared || latest === null) latest = readAnew();
      return latest;
    },
    end: () => {
      clearTimeout(reread);
      // A subscription that cannot be ended only brings hints that nobody hears.
      opened.then((unsubscribe) => unsubscribe()).catch(() => {});
    },
  };
}

/** Subscribes to the changes of a job, and has them published. Returns a function that ends the subscription. */
async function openWatch(store: RecordStore, jobId: string, change: () => void): Promise<() => Promise<void>> {
  const unsubscribe = await store.connection.subscribe(channels.job(jobId), change);
  try {
    await markWatched(store, jobId);
  } catch (error) {
    // A subscription that cannot be ended only brings hints that nobody hears.
    unsubscribe().catch(() => {});
    throw error;
  }
  return unsubscribe;
}

async function readWatched(store: RecordStore, jobId: string): Promise<WatchedJob | null> {
  const job = await readJob(store, jobId);
  if (job === null) return null;
  const [position = null] = job.status === 'QueuedJob' ? await readPositions(store, job.account, [jobId]) : [];
  return { job, position };
}

/** Makes a flag that `hint` sets, and that `changed` waits for and clears. */
function makeFlag(): { readonly hint: () => void; readonly changed: JobWatch['changed'] } {
  let flag = Promise.withResolvers<void>();
  return {
    hint: () => flag.resolve(),
    async changed(maxMs) {
      const timer = maxMs === undefined ? undefined : setTimeout(flag.resolve, maxMs);
      await flag.promise;
      clearTimeout(timer);
      flag = Promise.withResolvers();
    },
  };
}
