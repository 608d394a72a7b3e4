import type { Seal } from '../../base/seal.ts';
import type { BatchSummary } from '../../model/batch-summary.ts';
import type { Job } from '../../model/job.ts';
import { readTried, type WebhookAttempt } from '../../model/webhook-attempts.ts';
import { readBatch, summarizeBatch } from '../batches/read-batch.ts';
import type { Cursor } from '../jobs/list-jobs.ts';
import { readJob, readStored, readStoredEnds } from '../jobs/read-job.ts';
import { keys, longId, shortId } from '../keys.ts';
import { number, pairs, type RecordStore, text } from '../script.ts';

/** Deliveries that are read in one go. */
const maxRead = 100;
/** Those that failed are few: the states of more are looked through at once. */
const maxStatesRead = 500;
const maxSearched = 2_000;

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
  /** An attempt has ended before, perhaps of a delivery that a person has had sent again. */
  readonly wasTried: boolean;
  /** `traceparent` of the request of the job, or of the first job of the batch; `null` where it is not traced. */
  readonly requestTrace: string | null;
}

/** Opens what is sealed of a webhook: '' for what it has not, and `null` for what no secret of the service opens any more. */
export function openSealed(
  { authorization, secret }: Pick<OutgoingWebhook, 'authorization' | 'secret'>,
  seal: Pick<Seal, 'open'>,
): { readonly authorization: string | null; readonly secret: string | null } {
  return {
    authorization: authorization && seal.open('webhook', authorization),
    secret: secret && seal.open('webhook_secret', secret),
  };
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

async function readFacts(
  { connection }: RecordStore,
  { id, account, created_at }: Pick<Job, 'id' | 'account' | 'created_at'>,
) {
  const [secret, restoredFrom, tried] = await connection.readAll([
    ['HGET', keys.account(account), 'webhook_secret'],
    ['HGET', keys.restored, 'taken_at'],
    ['HGET', keys.webhook(id), 'tried'],
  ]);
  const isReplayed = created_at <= (number(restoredFrom) ?? Number.NEGATIVE_INFINITY);
  return { secret: text(secret), isReplayed, wasTried: text(tried) !== '' };
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

interface WantedDeliveries {
  readonly limit: number;
  readonly failedOnly: boolean;
  readonly after: Cursor | null;
}

/**
 * Lists deliveries of an account with their URLs, newest first, after a cursor: all, or failed ones only. Looks through about 2,000 of
 * them: a page of failed ones may be short although `next` says that more may follow. Of those that have not failed, the state alone is read.
 */
export async function listDeliveries(
  store: RecordStore,
  accountId: string,
  { limit, failedOnly, after: first }: WantedDeliveries,
): Promise<{ readonly deliveries: ListedDelivery[]; readonly next: Cursor | null }> {
  const deliveries: ListedDelivery[] = [];
  let after = first;
  for (let searched = 0; searched < maxSearched; ) {
    const left = limit - deliveries.length;
    const size = failedOnly ? maxStatesRead : Math.min(left, maxRead) + 1;
    const { cursors, isLast } = await readCursors(store, keys.deliveries(accountId), after, size);
    const wanted = failedOnly ? await findFailed(store, cursors) : cursors;
    const chosen = wanted.slice(0, left);
    const listed = await readListed(store, chosen);
    // Its state may have changed since it was read.
    deliveries.push(...listed.filter(({ state }) => !failedOnly || state === 'failed'));
    if (chosen.length < wanted.length) return { deliveries, next: chosen.at(-1) ?? after };
    if (isLast) return { deliveries, next: null };
    after = cursors.at(-1) ?? after;
    searched += cursors.length;
  }
  return { deliveries, next: after };
}

/** Reads the cursors of deliveries after one, newest first; those of one millisecond stand in the order of their short ids, last first. */
async function readCursors({ connection }: RecordStore, key: string, after: Cursor | null, size: number) {
  const at = after === null ? '+inf' : String(after.created_at);
  const [sameTime, older] = await Promise.all([
    after === null ? [] : connection.read(['ZREVRANGEBYSCORE', key, at, at, 'WITHSCORES']),
    connection.read(['ZREVRANGEBYSCORE', key, `(${at}`, '-inf', 'WITHSCORES', 'LIMIT', '0', String(size)]),
  ]);
  const rest = cursorsOf(sameTime).filter(({ id }) => after !== null && shortId(id) < shortId(after.id));
  const cursors = cursorsOf(older);
  return { cursors: [...rest, ...cursors], isLast: cursors.length < size };
}

function cursorsOf(flat: readonly string[]): Cursor[] {
  return Object.entries(pairs(flat)).map(([id, created_at]) => ({ id: longId(id), created_at: Number(created_at) }));
}

async function findFailed({ connection }: RecordStore, cursors: readonly Cursor[]): Promise<Cursor[]> {
  const states = await connection.readAll(cursors.map(({ id }) => ['HGET', keys.webhook(id), 'state']));
  return cursors.filter((_, n) => states[n] === 'failed');
}

/** Reads deliveries with their URLs in one call. */
async function readListed(store: RecordStore, cursors: readonly Cursor[]): Promise<ListedDelivery[]> {
  const ids = cursors.map(({ id }) => id);
  if (ids.length === 0) return [];
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
