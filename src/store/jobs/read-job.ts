import type { Job, JobStatus } from '../../model/job.ts';
import { keys } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

type Asked = Pick<Job, 'endpoint' | 'path' | 'args'> & { readonly webhook_url: string; readonly authorization: string };

/** Webhook of a job; `authorization` is sealed. */
export interface JobWebhook {
  readonly url: string;
  readonly receiver: string;
  readonly authorization: string;
}

export interface QueuePosition {
  /** Jobs of the account that wait before it; `null` when it does not wait for its turn. */
  readonly before: number | null;
  readonly running: number;
  readonly concurrency: number | null;
}

export async function readJob(store: RecordStore, id: string): Promise<Job | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.job(id)]));
  return fields.id === undefined ? null : jobOf(fields);
}

export async function readPositions(
  store: RecordStore,
  account: string,
  ids: readonly string[],
): Promise<QueuePosition[]> {
  if (ids.length === 0) return [];
  const [queue, key] = [keys.queue(account), keys.account(account)];
  const [fields, ...ranks] = await store.connection.readAll([
    ['HMGET', key, 'running', 'concurrency'],
    ...ids.map((id) => ['ZRANK', queue, id] as const),
  ]);
  const [running, concurrency] = fields as (string | null)[];
  return ranks.map((rank) => ({
    before: number(rank),
    running: Number(running),
    concurrency: number(concurrency),
  }));
}

export interface AttemptMark {
  readonly attempt: number;
  readonly started_at?: number;
  readonly ended_at?: number;
  /** `completed`, or why it ended. */
  readonly code?: string;
  /** As what it counts, when another attempt follows. */
  readonly counts?: 'failure' | 'interruption';
  /** Reason that the runner or the worker gave, when another attempt follows. */
  readonly reason?: string;
}

/** Returns the beginning and the end of each attempt of a job, in their order. */
export async function readAttempts(store: RecordStore, id: string): Promise<AttemptMark[]> {
  const marks = (await store.connection.read(['LRANGE', keys.attempts(id), '0', '-1'])) as string[];
  return marks.map((json) => JSON.parse(json) as AttemptMark);
}

export async function readWebhook(store: RecordStore, id: string): Promise<JobWebhook | null> {
  const [asked, receiver] = (await store.connection.read(['HMGET', keys.job(id), 'asked', 'receiver'])) as (
    | string
    | null
  )[];
  return webhookOf(asked, receiver);
}

export function webhookOf(asked: string | null | undefined, receiver: string | null | undefined): JobWebhook | null {
  if (!asked || !receiver) return null;
  const { webhook_url: url, authorization } = JSON.parse(asked) as Asked;
  return { url, receiver, authorization };
}

export function jobOf(fields: Readonly<Record<string, string>>): Job {
  const { endpoint, path, args, webhook_url } = JSON.parse(text(fields.asked)) as Asked;
  return {
    id: text(fields.id),
    account: text(fields.account),
    key: text(fields.key),
    endpoint,
    path,
    args,
    status: fields.status as JobStatus,
    revision: Number(fields.revision),
    created_at: Number(fields.created_at),
    started_at: number(fields.started_at),
    ended_at: number(fields.ended_at),
    progress: Number(fields.progress ?? 0),
    stage: fields.stage || null,
    speed_bytes: number(fields.speed_bytes),
    eta_seconds: number(fields.eta_seconds),
    attempt: Number(fields.attempt ?? 0),
    failures: Number(fields.failures ?? 0),
    interruptions: Number(fields.interruptions ?? 0),
    not_before: Number(fields.not_before ?? 0),
    deadline: number(fields.deadline),
    storing_since: number(fields.storing_since),
    verdict: fields.verdict ? (JSON.parse(fields.verdict) as Job['verdict']) : null,
    error_code: (fields.error_code || null) as Job['error_code'],
    error: fields.error || null,
    metadata: fields.metadata ? (JSON.parse(fields.metadata) as Job['metadata']) : null,
    delivered: fields.delivered ? (JSON.parse(fields.delivered) as Job['delivered']) : null,
    removed_at: number(fields.removed_at),
    webhook_url: webhook_url || null,
  };
}
