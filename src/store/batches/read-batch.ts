import { type BatchCounts, type BatchSummary, summarize } from '../../model/batch-summary.ts';
import { jobStatuses } from '../../model/job.ts';
import { keys, longId } from '../keys.ts';
import { pairs, type RecordStore, text } from '../script.ts';

const shortIdLength = 22;
/** Jobs that are looked at in one step. */
const pageSize = 100;

export interface StoredBatch {
  readonly id: string;
  readonly account: string;
  readonly jobIds: readonly string[];
  readonly isCancelled: boolean;
  readonly url: string;
  /** Sealed; '' without one. */
  readonly authorization: string;
  /** Milliseconds. */
  readonly created_at: number;
  /** Numbers of its ended jobs, kept at its end because the record forgets each job by itself; `null` before. */
  readonly ended: Pick<BatchCounts, 'completed' | 'failed'> | null;
}

export async function readBatch(store: RecordStore, id: string): Promise<StoredBatch | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.batch(id)]));
  if (fields.account === undefined) return null;
  const ids = text(fields.jobs);
  const jobIds = Array.from({ length: ids.length / shortIdLength }, (_, n) =>
    longId(ids.slice(n * shortIdLength, (n + 1) * shortIdLength)),
  );
  const { account, url, authorization, completed, failed } = fields;
  return {
    ...{ id, account, jobIds, isCancelled: fields.cancelled === '1' },
    ...{ url: text(url), authorization: text(authorization) },
    created_at: Number(fields.created_at),
    ended: completed === undefined ? null : { completed: Number(completed), failed: Number(failed) },
  };
}

/** Counts the jobs of a batch by their status. The sweep forgets none of them before their batch has ended. */
export async function summarizeBatch(store: RecordStore, batch: StoredBatch): Promise<BatchSummary> {
  if (batch.ended !== null) return summarize(batch, { queued: 0, running: 0, ...batch.ended });
  const counts: Record<keyof BatchCounts, number> = { queued: 0, running: 0, completed: 0, failed: 0 };
  for (let from = 0; from < batch.jobIds.length; from += pageSize) {
    for (const status of await readStatuses(store, batch.jobIds.slice(from, from + pageSize))) {
      if (status === 'QueuedJob') counts.queued++;
      else if (status === 'Running') counts.running++;
      else if (status === 'CompletedJob') counts.completed++;
      else if (status !== null) counts.failed++;
    }
  }
  return summarize(batch, counts);
}

/** Returns true when no job of a batch is open. Looks at the last items first, because these usually end last. */
export async function hasBatchEnded(store: RecordStore, { jobIds }: StoredBatch): Promise<boolean> {
  for (let to = jobIds.length; to > 0; to -= pageSize) {
    const page = jobIds.slice(Math.max(0, to - pageSize), to);
    const open = await store.connection.readAll(page.map((id) => ['HGET', keys.job(id), 'status']));
    if (open.some((status) => status !== null)) return false;
  }
  return true;
}

/** Reads what is open first: a job only ever goes from there to those that have ended. */
async function readStatuses(store: RecordStore, ids: readonly string[]) {
  const { connection } = store;
  const open = await connection.readAll(ids.map((id) => ['HGET', keys.job(id), 'status']));
  const ends = await connection.readAll(ids.map((id) => ['GETRANGE', keys.endedJob(id), '0', '63']));
  return ids.map((_, n) => {
    const status = text(open[n]) || text(ends[n]).split(' ')[1];
    // An ended job keeps the first letter of its status.
    return status ? (jobStatuses.find((one) => one.startsWith(status)) ?? null) : null;
  });
}
