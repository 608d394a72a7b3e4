import type { Job, JobStatus } from '../../model/job.ts';
import { keys } from '../keys.ts';
import { pairs, type RecordStore } from '../script.ts';
import { jobOf } from './read-job.ts';

/** Position in the list of an account's jobs: the older ones follow. */
export interface Cursor {
  readonly created_at: number;
  readonly id: string;
}

const pageSize = 100;
const maxPages = 20;

/**
 * Lists an account's jobs, newest first, after a place. Looks through at most 2,000 of them: with a rare status a page may
 * be short although `next` says that more may follow.
 */
export async function listJobs(
  store: RecordStore,
  account: string,
  wanted: { readonly status: JobStatus | undefined; readonly limit: number; readonly after: Cursor | null },
): Promise<{ jobs: Job[]; next: Cursor | null }> {
  const jobs: Job[] = [];
  let after = wanted.after;
  for (let page = 0; page < maxPages; page++) {
    const ids = await readPage(store, account, after);
    const found = await store.connection.readAll(ids.map(({ id }) => ['HGETALL', keys.job(id)]));
    for (const [n, reply] of found.entries()) {
      const fields = pairs(reply);
      const place = ids[n] ?? null;
      if (fields.id === undefined || (wanted.status !== undefined && fields.status !== wanted.status)) {
        after = place;
        continue;
      }
      if (jobs.length === wanted.limit) return { jobs, next: after };
      jobs.push(jobOf(fields));
      after = place;
    }
    if (ids.length < pageSize) return { jobs, next: null };
  }
  return { jobs, next: after };
}

/** Ids after a place, newest first; jobs of the same millisecond stand in the order of their ids, last first. */
async function readPage(store: RecordStore, account: string, after: Cursor | null): Promise<Cursor[]> {
  const key = keys.jobs(account);
  const from = after === null ? '+inf' : String(after.created_at);
  const skipped = after === null ? 0 : await countSame(store, key, after);
  const flat = (await store.connection.read([
    'ZREVRANGEBYSCORE',
    key,
    from,
    '-inf',
    'WITHSCORES',
    'LIMIT',
    String(skipped),
    String(pageSize),
  ])) as string[];
  const found: Cursor[] = [];
  for (let n = 0; n + 1 < flat.length; n += 2) found.push({ id: String(flat[n]), created_at: Number(flat[n + 1]) });
  return found;
}

/** Counts the jobs of the cursor's own millisecond that come before it, its own job included. */
async function countSame(store: RecordStore, key: string, after: Cursor): Promise<number> {
  const at = String(after.created_at);
  const same = (await store.connection.read(['ZREVRANGEBYSCORE', key, at, at])) as string[];
  return same.filter((id) => id >= after.id).length;
}
