import { isEnded, type Job, type JobStatus } from '../../model/job.ts';
import type { QueuePosition } from '../../model/job-json.ts';
import { keys, longId } from '../keys.ts';
import { readScore, scoresAt, startOf } from '../lua/job-index.ts';
import { pairs, type RecordStore } from '../script.ts';
import { readJobs, readPositions } from './read-job.ts';

/** Position in the list of an account's jobs: the older ones follow. */
export interface Cursor {
  readonly created_at: number;
  readonly id: string;
}

interface IndexedJob extends Cursor {
  readonly status: JobStatus | undefined;
}

interface WantedJobs {
  /** `ended` stands for every status that ends a job. */
  readonly status: JobStatus | 'ended' | undefined;
  readonly limit: number;
  readonly after: Cursor | null;
}

const pageSize = 2_000;
/** As many as an account has open unless the operator allows more: its running jobs are the oldest of them. */
const maxReadOpen = 10_000;
/** Entries read beyond a page: its last millisecond, whose jobs are not in the order of their ids, is then whole as a rule. */
const spare = 8;

/**
 * Lists an account's jobs, newest first, after a cursor, in two calls of Redis. With a rare status it looks, 2,000 a call, through about
 * 10,000 open jobs or 2,000 that have ended: a page may be short although `next` says that more may follow. Jobs of another status are not read.
 */
export async function listJobs(store: RecordStore, account: string, { status, limit, after: first }: WantedJobs) {
  const isAny = status === undefined || status === 'ended';
  const isWanted = (one: { readonly status: JobStatus | undefined }) => isAny || one.status === status;
  const size = isAny ? limit + 1 : pageSize;
  const maxRead = isAny || isEnded(status) ? pageSize : maxReadOpen;
  // Open jobs first: one that ends meanwhile is found twice, and not missed.
  const starts =
    status === undefined ? (['Running', 'CompletedJob'] as const) : [status === 'ended' ? 'CompletedJob' : status];
  const jobs: Job[] = [];
  // A job that began to wait again meanwhile has no position.
  const positions = new Map<string, QueuePosition>();
  let after = first;
  for (let read = 0; read < maxRead; ) {
    const { indexed, isLast } = await readPage(store, keys.jobs(account), starts.map(startOf), after, size);
    const wanted = indexed.filter(isWanted);
    for (let n = 0; n < wanted.length; ) {
      if (jobs.length === limit) return { jobs, positions, next: indexed[indexed.indexOf(wanted[n]!) - 1] ?? after };
      const some = wanted.slice(n, n + limit - jobs.length);
      // The status of a job may have changed since the page was read.
      jobs.push(...(await readIndexed(store, account, some, positions)).filter(isWanted));
      n += some.length;
    }
    after = indexed.at(-1) ?? after;
    if (isLast) return { jobs, positions, next: null };
    read += indexed.length;
  }
  return { jobs, positions, next: after };
}

/** Reads jobs, and in the same call the positions of those that wait. */
async function readIndexed(
  store: RecordStore,
  account: string,
  indexed: readonly IndexedJob[],
  positions: Map<string, QueuePosition>,
): Promise<Job[]> {
  const waiting = indexed.filter(({ status }) => status === 'QueuedJob').map(({ id }) => id);
  const ids = indexed.map(({ id }) => id);
  const [jobs, found] = await Promise.all([readJobs(store, ids), readPositions(store, account, waiting)]);
  for (const [n, position] of found.entries()) positions.set(waiting[n]!, position);
  return jobs.filter((job) => job !== null);
}

/** Jobs after a cursor, newest first, of the ranges of the index that begin at these scores. */
async function readPage(
  store: RecordStore,
  key: string,
  starts: readonly number[],
  after: Cursor | null,
  size: number,
) {
  const pages = await Promise.all(starts.map((start) => readRange(store, key, start, after, size)));
  // A job may have left a range for a later one between the two looks at it.
  const twice = pages.findIndex(({ isReadTwice }) => isReadTwice);
  for (const [n, start] of starts.entries())
    if (twice !== -1 && n > twice) pages.push(await readRange(store, key, start, after, size));
  // A page that is not the last one of its range knows nothing of what was created before its end.
  const from = Math.max(
    ...pages.map(({ indexed, isLast }) => (isLast ? -Infinity : (indexed.at(-1)?.created_at ?? 0))),
  );
  const found = new Map(pages.flatMap(({ indexed }) => indexed.map((one) => [one.id, one])));
  const indexed = [...found.values()].filter(({ created_at }) => created_at >= from).sort(newestFirst);
  return { indexed, isLast: pages.every(({ isLast }) => isLast) };
}

/** A page of one range, `isReadTwice` when its end took a second look; jobs of the same millisecond stand in the order of their ids, last first. */
async function readRange(store: RecordStore, key: string, start: number, after: Cursor | null, size: number) {
  const below = `(${after === null ? start + startOf('Running') : scoresAt(start, after.created_at)[0]}`;
  const limit = ['WITHSCORES', 'LIMIT', '0', String(size + spare)];
  const [sameAsCursor, flat] = await Promise.all([
    after === null ? [] : readMillisecond(store, key, start, after.created_at),
    store.connection.read(['ZREVRANGEBYSCORE', key, below, String(start), ...limit]),
  ]);
  let indexed = indexedOf(flat);
  const isLast = indexed.length < size + spare;
  const last = indexed.at(-1)?.created_at;
  let isReadTwice = false;
  if (!isLast && last !== undefined) {
    const whole = indexed.filter((one) => one.created_at > last);
    isReadTwice = whole.length < size;
    indexed = isReadTwice ? indexed.concat(await readMillisecond(store, key, start, last)) : whole;
  }
  const rest = sameAsCursor.filter(({ id }) => after !== null && id < after.id);
  return { indexed: [...rest, ...indexed].sort(newestFirst), isLast, isReadTwice };
}

async function readMillisecond(
  { connection }: RecordStore,
  key: string,
  start: number,
  at: number,
): Promise<IndexedJob[]> {
  const [least, behind] = scoresAt(start, at);
  return indexedOf(await connection.read(['ZREVRANGEBYSCORE', key, `(${behind}`, String(least), 'WITHSCORES']));
}

function indexedOf(flat: readonly string[]): IndexedJob[] {
  return Object.entries(pairs(flat)).map(([id, score]) => ({ id: longId(id), ...readScore(Number(score)) }));
}

function newestFirst(one: IndexedJob, other: IndexedJob): number {
  return other.created_at - one.created_at || (one.id < other.id ? 1 : -1);
}
