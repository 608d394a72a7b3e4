import type { Job, JobStatus } from '../../model/job.ts';
import { keys, longId } from '../keys.ts';
import type { RecordStore } from '../script.ts';
import { lastOfMillisecond, readScore } from './job-index.ts';
import { readJobs } from './read-job.ts';

/** Position in the list of an account's jobs: the older ones follow. */
export interface Cursor {
  readonly created_at: number;
  readonly id: string;
}

interface Place extends Cursor {
  readonly status: JobStatus | undefined;
}

interface WantedJobs {
  readonly status: JobStatus | undefined;
  readonly limit: number;
  readonly after: Cursor | null;
}

const maxLooked = 2_000;
const pageSize = 1_000;

/**
 * Lists an account's jobs, newest first, after a place. Looks through about 2,000 of them: with a rare status a page may be
 * short although `next` says that more may follow. Jobs of another status are not read.
 */
export async function listJobs(
  store: RecordStore,
  account: string,
  { status, limit, after: first }: WantedJobs,
): Promise<{ jobs: Job[]; next: Cursor | null }> {
  const isWanted = (one: { readonly status: JobStatus | undefined }) => status === undefined || one.status === status;
  const size = status === undefined ? limit + 1 : pageSize;
  const jobs: Job[] = [];
  let after = first;
  for (let looked = 0; looked < maxLooked; ) {
    const { places, isLast } = await readPage(store, account, after, size);
    let found = new Map<string, Job | null>();
    for (const [n, place] of places.entries()) {
      if (isWanted(place)) {
        if (jobs.length === limit) return { jobs, next: after };
        if (!found.has(place.id)) {
          const ids = places
            .slice(n)
            .filter(isWanted)
            .map(({ id }) => id)
            .slice(0, limit - jobs.length);
          const read = await readJobs(store, ids);
          found = new Map(ids.map((id, at) => [id, read[at] ?? null]));
        }
        // Its status may have changed since the page was read.
        const job = found.get(place.id);
        if (job && isWanted(job)) jobs.push(job);
      }
      after = place;
    }
    if (isLast) return { jobs, next: null };
    looked += places.length;
  }
  return { jobs, next: after };
}

/** Places after a place, newest first; jobs of the same millisecond stand in the order of their ids, last first. */
async function readPage(
  store: RecordStore,
  account: string,
  after: Cursor | null,
  size: number,
): Promise<{ places: Place[]; isLast: boolean }> {
  const key = keys.jobs(account);
  const sameAsCursor = after === null ? [] : await readMillisecond(store, key, after.created_at);
  const below = after === null ? '+inf' : `(${after.created_at}`;
  const limit = ['WITHSCORES', 'LIMIT', '0', String(size)];
  let places = placesOf(await store.connection.read(['ZREVRANGEBYSCORE', key, below, '-inf', ...limit]));
  const isLast = places.length < size;
  const last = places.at(-1)?.created_at;
  if (!isLast && last !== undefined) {
    // The page may end within a millisecond, whose jobs are not in the order of their ids there.
    places = places.filter((place) => place.created_at > last).concat(await readMillisecond(store, key, last));
  }
  const rest = sameAsCursor.filter(({ id }) => after !== null && id < after.id);
  return { places: [...rest, ...places].sort(newestFirst), isLast };
}

async function readMillisecond({ connection }: RecordStore, key: string, at: number): Promise<Place[]> {
  const range = [`(${at + lastOfMillisecond}`, String(at), 'WITHSCORES'];
  return placesOf(await connection.read(['ZREVRANGEBYSCORE', key, ...range]));
}

function placesOf(flat: readonly string[]): Place[] {
  const scores = flat.filter((_, n) => n % 2 === 1).map(Number);
  return scores.map((score, n) => ({ id: longId(flat[2 * n] ?? ''), ...readScore(score) }));
}

function newestFirst(one: Place, other: Place): number {
  return other.created_at - one.created_at || (one.id < other.id ? 1 : -1);
}
