import type { BatchSummary } from '../../model/batch.ts';
import type { Job } from '../../model/job.ts';
import { readBatch, summarizeBatch } from '../batches/read-batch.ts';
import { readStored, readStoredEnds } from '../jobs/read-job.ts';
import { keys, longId } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

const pageSize = 100;

export interface StoredDelivery {
  readonly jobId: string;
  readonly state: 'due' | 'delivered' | 'failed';
  readonly attempts: number;
  readonly last_status: number | null;
  readonly next_at: number | null;
  readonly created_at: number;
  readonly last_at: number | null;
}

/** Content of a webhook; `authorization` and `secret` are sealed, '' where the account has none. */
export interface OutgoingWebhook {
  readonly about: { readonly job: Job } | { readonly batch: BatchSummary };
  readonly url: string;
  readonly authorization: string;
  readonly secret: string;
}

/** Reads the content of the webhook of a job or a batch; `null` when neither is in the record any more. */
export async function readOutgoingWebhook(store: RecordStore, id: string): Promise<OutgoingWebhook | null> {
  const { job, webhook } = (await readStored(store, id)) ?? {};
  if (!job) return readBatchWebhook(store, id);
  if (!webhook) return null;
  const { url, authorization } = webhook;
  return { about: { job }, url, authorization, secret: await readSecret(store, job.account) };
}

async function readBatchWebhook(store: RecordStore, id: string): Promise<OutgoingWebhook | null> {
  const batch = await readBatch(store, id);
  if (batch === null || batch.url === '') return null;
  const { account, url, authorization } = batch;
  const about = { batch: await summarizeBatch(store, batch) };
  return { about, url, authorization, secret: await readSecret(store, account) };
}

async function readSecret(store: RecordStore, account: string): Promise<string> {
  return text(await store.connection.read(['HGET', keys.account(account), 'webhook_secret']));
}

/** Returns the delivery of a job's webhook, or `null` when the job has none or has not ended. */
export async function readDelivery(store: RecordStore, jobId: string): Promise<StoredDelivery | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.webhook(jobId)]));
  return deliveryOf(jobId, fields);
}

/** Returns deliveries of an account with their URLs, newest first: all, or failed ones only. */
export async function listDeliveries(
  store: RecordStore,
  accountId: string,
  limit: number,
  failedOnly: boolean,
): Promise<(StoredDelivery & { url: string })[]> {
  const key = keys.deliveries(accountId);
  const found: (StoredDelivery & { url: string })[] = [];
  for (let start = 0; ; start += pageSize) {
    const page = await store.connection.read(['ZREVRANGE', key, String(start), String(start + pageSize - 1)]);
    const jobs = page.map(longId);
    const replies = await store.connection.readAll(jobs.map((job) => ['HGETALL', keys.webhook(job)]));
    const wanted = jobs
      .flatMap((job, n) => deliveryOf(job, pairs(replies[n])) ?? [])
      .filter(({ state }) => !failedOnly || state === 'failed')
      .slice(0, limit - found.length);
    const ends = await readStoredEnds(
      store,
      wanted.map(({ jobId }) => jobId),
    );
    found.push(...wanted.map((delivery, n) => ({ ...delivery, url: ends[n]?.webhook?.url ?? '' })));
    if (found.length === limit || jobs.length < pageSize) return found;
  }
}

function deliveryOf(jobId: string, fields: Readonly<Record<string, string>>): StoredDelivery | null {
  if (fields.state === undefined) return null;
  return {
    jobId,
    state: fields.state as StoredDelivery['state'],
    attempts: Number(fields.attempts),
    last_status: number(fields.last_status),
    next_at: number(fields.next_at),
    created_at: Number(fields.created_at),
    last_at: number(fields.last_at),
  };
}
