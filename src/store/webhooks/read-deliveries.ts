import type { BatchSummary } from '../../model/batch.ts';
import type { Job } from '../../model/job.ts';
import { readTried, type WebhookAttempt } from '../../model/webhook-attempts.ts';
import { readBatch, summarizeBatch } from '../batches/read-batch.ts';
import { readJob, readStored, readStoredEnds } from '../jobs/read-job.ts';
import { keys, longId } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

const pageSize = 100;
/** Those that failed are few: more are looked through at once. */
const pageOfFailed = 500;

export interface StoredDelivery {
  /** Id of the job or the batch. */
  readonly id: string;
  readonly state: 'due' | 'delivered' | 'failed';
  readonly attempts: number;
  readonly last_status: number | null;
  readonly next_at: number | null;
  readonly created_at: number;
  readonly last_at: number | null;
  /** Attempts that have ended, oldest first, as far as the record keeps them. */
  readonly tried: readonly WebhookAttempt[];
}

/** A delivery in the list of its account. */
export interface ListedDelivery extends StoredDelivery {
  readonly kind: 'job' | 'batch';
  readonly url: string;
}

/** Content of a webhook; `authorization` and `secret` are sealed, '' where the account has none. */
export interface OutgoingWebhook {
  readonly about: { readonly job: Job } | { readonly batch: BatchSummary };
  readonly url: string;
  readonly authorization: string;
  readonly secret: string;
  /** The record was restored from a backup of the job or batch: its end may have been told before. */
  readonly isReplayed: boolean;
  /** `traceparent` of the request of the job, or of the first job of the batch; `null` where it is not traced. */
  readonly requestTrace: string | null;
}

/** Reads the content of the webhook of a job or a batch; `null` when neither is in the record any more. */
export async function readOutgoingWebhook(store: RecordStore, id: string): Promise<OutgoingWebhook | null> {
  const { job, webhook } = (await readStored(store, id)) ?? {};
  if (!job) return readBatchWebhook(store, id);
  if (!webhook) return null;
  const { url, authorization } = webhook;
  const requestTrace = job.trace?.parent ?? null;
  return { about: { job }, url, authorization, requestTrace, ...(await readFacts(store, job)) };
}

async function readBatchWebhook(store: RecordStore, id: string): Promise<OutgoingWebhook | null> {
  const batch = await readBatch(store, id);
  if (batch === null || batch.url === '') return null;
  const { url, authorization } = batch;
  const about = { batch: await summarizeBatch(store, batch) };
  // One request made all of its jobs.
  const first = await readJob(store, batch.jobIds[0] ?? '');
  const requestTrace = first?.trace?.parent ?? null;
  return { about, url, authorization, requestTrace, ...(await readFacts(store, batch)) };
}

async function readFacts({ connection }: RecordStore, { account, created_at }: Pick<Job, 'account' | 'created_at'>) {
  const [secret, restoredFrom] = await connection.readAll([
    ['HGET', keys.account(account), 'webhook_secret'],
    ['HGET', keys.restored, 'taken_at'],
  ]);
  return { secret: text(secret), isReplayed: created_at <= (number(restoredFrom) ?? Number.NEGATIVE_INFINITY) };
}

/** Returns the delivery of the webhook of a job or a batch, or `null` when it has none or has not ended. */
export async function readDelivery(store: RecordStore, id: string): Promise<StoredDelivery | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.webhook(id)]));
  return deliveryOf(id, fields);
}

/** Returns true when a secret signs the webhooks of the account. */
export async function isSigned({ connection }: RecordStore, accountId: string): Promise<boolean> {
  return text(await connection.read(['HGET', keys.account(accountId), 'webhook_secret'])) !== '';
}

/** Returns deliveries of an account with their URLs, newest first: all, or failed ones only. */
export async function listDeliveries(
  store: RecordStore,
  accountId: string,
  limit: number,
  failedOnly: boolean,
): Promise<ListedDelivery[]> {
  const key = keys.deliveries(accountId);
  const found: ListedDelivery[] = [];
  const size = failedOnly ? pageOfFailed : pageSize;
  for (let start = 0; ; start += size) {
    const page = await store.connection.read(['ZREVRANGE', key, String(start), String(start + size - 1)]);
    const listed = await readListed(store, page.map(longId));
    found.push(...listed.filter(({ state }) => !failedOnly || state === 'failed').slice(0, limit - found.length));
    if (found.length === limit || page.length < size) return found;
  }
}

/** Reads deliveries with their URLs in one call. */
async function readListed(store: RecordStore, ids: readonly string[]): Promise<ListedDelivery[]> {
  const [deliveries, urls, ends] = await Promise.all([
    store.connection.readAll(ids.map((id) => ['HGETALL', keys.webhook(id)])),
    store.connection.readAll(ids.map((id) => ['HGET', keys.batch(id), 'url'])),
    readStoredEnds(store, ids),
  ]);
  return ids.flatMap((id, n): ListedDelivery[] => {
    const delivery = deliveryOf(id, pairs(deliveries[n]));
    if (delivery === null) return [];
    const url = ends[n]?.webhook?.url ?? text(urls[n]);
    return [{ ...delivery, kind: urls[n] === null ? 'job' : 'batch', url }];
  });
}

function deliveryOf(id: string, fields: Readonly<Record<string, string>>): StoredDelivery | null {
  if (fields.state === undefined) return null;
  return {
    id,
    state: fields.state as StoredDelivery['state'],
    attempts: Number(fields.attempts),
    last_status: number(fields.last_status),
    next_at: number(fields.next_at),
    created_at: Number(fields.created_at),
    last_at: number(fields.last_at),
    tried: readTried(fields.tried ?? '', Number(fields.created_at)),
  };
}
