import { failures } from '../../base/errors.ts';
import { msOf, readStages, type StageMark } from '../../model/attempt-stages.ts';
import { endpoints, type Job, type JobStatus } from '../../model/job.ts';
import type { QueuePosition } from '../../model/job-json.ts';
import type { AttemptTimes } from '../../model/job-spans.ts';
import { keys } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';
import { type JobTexts, readEnds, type StoredEnd } from './ended-job.ts';

type Asked = Pick<Job, 'endpoint' | 'path' | 'args'> & {
  readonly webhook_url: string;
  readonly authorization: string;
  /** Absent in a job that is not traced. */
  readonly trace?: string;
};

/** Webhook of a job; `authorization` is sealed. */
export interface JobWebhook {
  readonly url: string;
  readonly receiver: string;
  readonly authorization: string;
}

export interface StoredJob {
  readonly job: Job;
  readonly webhook: JobWebhook | null;
  readonly attempts: readonly AttemptMark[];
  /** Fields of its record that are damaged: those of the job, and `attempts`, which decide nothing. */
  readonly unreadable: readonly string[];
}

export async function readJob(store: RecordStore, jobId: string): Promise<Job | null> {
  return (await readStored(store, jobId))?.job ?? null;
}

export async function readJobs(store: RecordStore, ids: readonly string[]): Promise<(Job | null)[]> {
  return (await readAllStored(store, ids)).map((stored) => stored?.job ?? null);
}

/**
 * Reads jobs in one call, in the order of these ids; `null` for one that is not in the record. What is open is read first: a job only ever
 * goes from there to those that have ended.
 */
async function readAllStored(store: RecordStore, ids: readonly string[]): Promise<(StoredJob | null)[]> {
  const [open, ends] = await Promise.all([
    store.connection.readAll(ids.map((id) => ['HGETALL', keys.job(id)])),
    readStoredEnds(store, ids),
  ]);
  return ids.map((id, n) => {
    const fields = pairs(open[n]);
    return Object.keys(fields).length > 0 ? openJobOf(id, fields) : (ends[n] ?? null);
  });
}

/** Reads jobs that have ended, in the order of these ids; `null` for others. */
export async function readStoredEnds(store: RecordStore, ids: readonly string[]): Promise<(StoredJob | null)[]> {
  const ends = ids.length === 0 ? [] : await readEnds(store, ids);
  return ends.map((end, n) => end && storedEndOf(ids[n] ?? '', end));
}

/** Reads a job, in a second call where it has ended: most that are read are open. */
export async function readStored(store: RecordStore, jobId: string): Promise<StoredJob | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.job(jobId)]));
  if (Object.keys(fields).length > 0) return openJobOf(jobId, fields);
  return (await readStoredEnds(store, [jobId]))[0] ?? null;
}

export async function readStoredAtOnce(store: RecordStore, jobId: string): Promise<StoredJob | null> {
  return (await readAllStored(store, [jobId]))[0] ?? null;
}

export async function readPositions(
  store: RecordStore,
  account: string,
  ids: readonly string[],
): Promise<QueuePosition[]> {
  if (ids.length === 0) return [];
  const { connection } = store;
  const [[running, concurrency], ranks] = await Promise.all([
    connection.read(['HMGET', keys.account(account), 'running', 'concurrency']),
    connection.readAll(ids.map((id) => ['ZRANK', keys.queue(account), id])),
  ]);
  const shared = { running: Number(running), concurrency: number(concurrency) };
  return ranks.map((rank) => ({ before: number(rank), ...shared }));
}

export interface AttemptMark extends AttemptTimes {
  /** As what it counts, when another attempt follows. */
  readonly counts?: 'failure' | 'interruption';
  /** Reason that the runner or the worker gave, when another attempt follows. */
  readonly reason?: string;
}

/** Milliseconds since 1970 of the last moment that a `Date` can be; no other number of a job is as large. */
const latestMs = 8_640_000_000_000_000;

/** Reads the JSON texts, the numbers and the code of one job, each as `null` where it is damaged: whoever reads many jobs goes on, and an operator can end this one. */
class DamageReader {
  readonly unreadable: string[] = [];

  read<T extends object>(name: string, json: string, fits: (value: unknown) => boolean): T | null {
    try {
      const value: unknown = JSON.parse(json);
      if (fits(value)) return value as T;
    } catch {
      // No JSON.
    }
    return this.#note(name);
  }

  readOptional<T extends object>(name: string, json: string | undefined): T | null {
    return json ? this.read<T>(name, json, isObject) : null;
  }

  readNumber(name: string, fields: Readonly<Record<string, string>>): number | null {
    const read = number(fields[name]);
    if (read === null || Math.abs(read) <= latestMs) return read;
    return this.#note(name);
  }

  readCode(code: string | undefined): Job['error_code'] {
    if (!code) return null;
    if (Object.hasOwn(failures, code)) return code as Job['error_code'];
    return this.#note('error_code');
  }

  /** Notes the numbers that scripts calculate with and that are none; without the first two there is no job. */
  noteCounts(fields: Readonly<Record<string, string>>): void {
    const { revision = '', created_at = '', attempt = '0', failures = '0', interruptions = '0' } = fields;
    const counts = { revision, created_at, attempt, failures, interruptions };
    for (const [name, count] of Object.entries(counts)) if (!/^\d+$/.test(count)) this.#note(name);
  }

  #note(name: string): null {
    if (!this.unreadable.includes(name)) this.unreadable.push(name);
    return null;
  }

  /** A job that is open, whatever its status says, waits or runs. */
  readOpenStatus({ status, started_at }: Readonly<Record<string, string>>): JobStatus {
    if (status === 'QueuedJob' || status === 'Running') return status;
    this.#note('status');
    return started_at ? 'Running' : 'QueuedJob';
  }

  readMarks(json: string | undefined): readonly StoredMark[] {
    const areLists = (marks: unknown) => Array.isArray(marks) && marks.every(Array.isArray);
    return this.read<StoredMark[]>('attempts', `[${json ?? ''}]`, areLists) ?? [];
  }
}

export function openJobOf(jobId: string, fields: Readonly<Record<string, string>>): StoredJob {
  const reader = new DamageReader();
  reader.noteCounts(fields);
  const hasArgs = (asked: unknown) => isObject(asked) && isObject(asked.args);
  const asked = reader.read<Asked>('asked', text(fields.asked), hasArgs) ?? askedBy(text(fields.line));
  const { endpoint, path, args, webhook_url, authorization, trace } = asked;
  const texts = {
    ...{ key: text(fields.key), endpoint, path, args },
    webhook_url: webhook_url || null,
    webhook_authorization: authorization || null,
    trace: trace === undefined ? null : { parent: trace },
    error: null,
    metadata: reader.readOptional<NonNullable<Job['metadata']>>('metadata', fields.metadata),
    delivered: reader.readOptional<NonNullable<Job['delivered']>>('delivered', fields.delivered),
  };
  const verdict = reader.readOptional<NonNullable<Job['verdict']>>('verdict', fields.verdict);
  const status = reader.readOpenStatus(fields);
  const job = { ...jobOf(jobId, fields, { ...texts, verdict }, reader), status };
  const attempts = openMarksOf(job, reader.readMarks(fields.attempts), fields.stages);
  return { job, webhook: jobWebhookOf(job, fields.receiver), attempts, unreadable: reader.unreadable };
}

function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return json instanceof Object && !Array.isArray(json);
}

/** Returns what the line of a job in the request log, such as `GET /v1/video/download`, says of what was asked. */
function askedBy(line: string): Asked {
  const [, path = ''] = line.split(' ');
  const endpoint = endpoints.find((one) => path.includes(`/${one}`)) ?? 'video';
  return { endpoint, path, args: {}, webhook_url: '', authorization: '' };
}

export function storedEndOf(jobId: string, { words, texts, attempts }: StoredEnd): StoredJob {
  const reader = new DamageReader();
  if (texts === null) reader.unreadable.push('texts');
  const job = jobOf(jobId, words, { ...(texts ?? lostTexts), verdict: null }, reader);
  const marks = marksOf(job, reader.readMarks(attempts));
  return { job, webhook: jobWebhookOf(job, words.receiver), attempts: marks, unreadable: reader.unreadable };
}

const lostTexts: JobTexts = {
  ...{ key: '', endpoint: 'video', path: '', args: {}, webhook_url: null, webhook_authorization: null },
  ...{ error: null, metadata: null, delivered: null, trace: null },
};

function jobWebhookOf(
  { webhook_url: url, webhook_authorization }: Job,
  receiver: string | undefined,
): JobWebhook | null {
  return url && receiver ? { url, receiver, authorization: webhook_authorization ?? '' } : null;
}

/** Returns the marks of an open job; the stages of the attempt that goes on stand beside them. */
function openMarksOf(job: Job, stored: readonly StoredMark[], stages: string | undefined): AttemptMark[] {
  const marks = marksOf(job, stored);
  const last = marks.at(-1);
  if (!last || !stages) return marks;
  return [...marks.slice(0, -1), { ...last, stages: stagesOf(job, stages) }];
}

/** Reads stages behind the milliseconds between the creation of the job and the first of them. */
function stagesOf({ created_at }: Job, written: string): StageMark[] {
  const times = readStages(written);
  const beganAt = created_at + Number.parseInt(written, 10);
  return times.map((time, n) => ({ ...time, at: beganAt + msOf(times.slice(0, n)) }));
}

type StoredMark = [
  attempt: number,
  sinceCreation: number,
  code?: string,
  counts?: string,
  reason?: string,
  stages?: string,
];

/** Returns the marks of a job's attempts: one begins with two values, and ends with three or more. Counts and reason are 0 or '' for none. */
function marksOf(job: Job, marks: readonly StoredMark[]): AttemptMark[] {
  return marks.map(([attempt, sinceCreation, code, counts, reason, stages]): AttemptMark => {
    const at = job.created_at + sinceCreation;
    if (code === undefined) return { attempt, started_at: at };
    return {
      ...{ attempt, ended_at: at, code },
      ...(counts && { counts: counts as NonNullable<AttemptMark['counts']> }),
      ...(reason && { reason }),
      ...(stages && { stages: stagesOf(job, stages) }),
    };
  });
}

function jobOf(
  jobId: string,
  fields: Readonly<Record<string, string>>,
  texts: JobTexts & Pick<Job, 'verdict'>,
  reader: DamageReader,
): Job {
  const read = (name: string) => reader.readNumber(name, fields);
  const job: Job = {
    id: jobId,
    account: text(fields.account),
    status: fields.status as JobStatus,
    revision: read('revision') ?? 0,
    created_at: read('created_at') ?? 0,
    started_at: read('started_at'),
    ended_at: read('ended_at'),
    progress: read('progress') ?? 0,
    stage: fields.stage || null,
    speed_bytes: read('speed_bytes'),
    eta_seconds: read('eta_seconds'),
    attempt: read('attempt') ?? 0,
    failures: read('failures') ?? 0,
    interruptions: read('interruptions') ?? 0,
    preempted: read('preempted'),
    not_before: read('not_before') ?? 0,
    deadline: read('deadline'),
    storing_since: read('storing_since'),
    error_code: reader.readCode(fields.error_code),
    removed_at: read('removed_at'),
    ...texts,
  };
  const { unreadable } = reader;
  return unreadable.length > 0 ? { ...job, unreadable: [...unreadable] } : job;
}
