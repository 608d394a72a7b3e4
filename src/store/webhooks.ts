import { refuse } from '../base/errors.ts';
import type { Job } from '../model/job.ts';
import { jobOf, webhookOf } from './jobs/read-job.ts';
import { keys } from './keys.ts';
import { number, pairs, run, type Store, text } from './script.ts';
import { dueWebhooks as dueWebhooksScript } from './scripts/due-webhooks.ts';
import { endWebhook as endWebhookScript } from './scripts/end-webhook.ts';
import { replayWebhook as replayWebhookScript } from './scripts/replay-webhook.ts';
import { takeWebhook as takeWebhookScript } from './scripts/take-webhook.ts';

const attemptsMost = 3;
const pageSize = 100;

/** A webhook that waits for its delivery: its receiver and its job. */
export interface Due {
  readonly receiver: string;
  readonly job: string;
}

/** The delivery of one job's webhook as the record keeps it. */
export interface Delivery {
  readonly job: string;
  readonly state: 'due' | 'delivered' | 'failed';
  readonly attempts: number;
  readonly last_status: number | null;
  readonly next_at: number | null;
  readonly created_at: number;
  /** When the last attempt began. */
  readonly last_at: number | null;
}

/** What a webhook is made of. The sealed texts are '' where there are none. */
export interface Outgoing {
  readonly job: Job;
  readonly url: string;
  readonly authorization: string;
  /** What the account signs its webhooks with now. */
  readonly secret: string;
}

/** Webhooks whose next attempt may begin, earliest first, and the time up to which there are no others if these are fewer than the limit. */
export async function dueWebhooks(
  store: Store,
  limit: number,
  from = 0,
): Promise<{ due: (Due & { at: number })[]; now: number }> {
  const [, now, flat] = await run(store, dueWebhooksScript, { webhooks: keys.webhooks }, { from, limit });
  const due = Object.entries(pairs(flat)).map(([member, at]) => {
    const cut = member.lastIndexOf('/');
    return { receiver: member.slice(0, cut), job: member.slice(cut + 1), at: Number(at) };
  });
  return { due, now: Number(now) };
}

/** Reads what the webhook of a job is made of; `null` when the record has no such job any more. */
export async function readOutgoing(store: Store, job: string): Promise<Outgoing | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.job(job)], keys.job(job)));
  const webhook = webhookOf(fields.asked, fields.receiver);
  if (!fields.id || webhook === null) return null;
  const account = keys.account(text(fields.account));
  const secret = await store.connection.read(['HGET', account, 'webhook_secret'], account);
  return {
    job: jobOf(fields),
    url: webhook.url,
    authorization: webhook.authorization,
    secret: text(secret),
  };
}

/** Claims one attempt of a delivery, counted before it is sent; `null` when there is none to make. */
export async function takeWebhook(store: Store, due: Due, leaseMilliseconds: number): Promise<number | null> {
  const reply = await run(
    store,
    takeWebhookScript,
    { webhooks: keys.webhooks, webhook: keys.webhook(due.job) },
    { member: `${due.receiver}/${due.job}`, lease: leaseMilliseconds, most: attemptsMost },
  );
  return reply[0] === 'taken' ? Number(reply[1]) : null;
}

/** Ends one attempt: `again` is tried after the gap while attempts are left, `refused` is final. */
export async function endWebhook(
  store: Store,
  due: Due,
  attempt: number,
  ended: { verdict: 'delivered' | 'again' | 'refused'; status: number | null },
  gapMilliseconds: number,
): Promise<'delivered' | 'again' | 'failed' | 'stale'> {
  const [word] = await run(
    store,
    endWebhookScript,
    { webhooks: keys.webhooks, webhook: keys.webhook(due.job) },
    {
      member: `${due.receiver}/${due.job}`,
      attempt,
      verdict: ended.verdict,
      status: ended.status ?? '',
      gap: gapMilliseconds,
      most: attemptsMost,
    },
  );
  return text(word) as 'delivered' | 'again' | 'failed' | 'stale';
}

/** The delivery of a job's webhook, or `null` when the job has none or has not ended. */
export async function readDelivery(store: Store, job: string): Promise<Delivery | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.webhook(job)], keys.webhook(job)));
  return deliveryOf(job, fields);
}

/** Deliveries of an account with their URLs, newest first: all, or those that have failed. */
export async function listDeliveries(
  store: Store,
  account: string,
  limit: number,
  failedOnly: boolean,
): Promise<(Delivery & { url: string })[]> {
  const key = keys.deliveries(account);
  const found: (Delivery & { url: string })[] = [];
  for (let start = 0; ; start += pageSize) {
    const range = ['ZREVRANGE', key, String(start), String(start + pageSize - 1)];
    const jobs = (await store.connection.read(range, key)) as string[];
    const replies = await store.connection.batch(
      jobs.flatMap((job) => [
        { key: keys.webhook(job), command: ['HGETALL', keys.webhook(job)] },
        { key: keys.job(job), command: ['HMGET', keys.job(job), 'asked', 'receiver'] },
      ]),
    );
    for (const [n, job] of jobs.entries()) {
      const delivery = deliveryOf(job, pairs(replies[2 * n]));
      if (delivery === null || (failedOnly && delivery.state !== 'failed')) continue;
      const [asked, receiver] = replies[2 * n + 1] as (string | null)[];
      found.push({ ...delivery, url: webhookOf(asked, receiver)?.url ?? '' });
      if (found.length === limit) return found;
    }
    if (jobs.length < pageSize) return found;
  }
}

/** Makes a delivery that has ended due again, with all its attempts. */
export async function replayWebhook(store: Store, job: string): Promise<void> {
  const [word] = await run(
    store,
    replayWebhookScript,
    { job: keys.job(job), webhooks: keys.webhooks, webhook: keys.webhook(job) },
    { jobId: job },
  );
  if (word === 'not_found') throw refuse('not_found', `There is no delivery of a webhook for ${job}`);
  if (word === 'not_ended') throw refuse('not_ended', 'The delivery has not ended yet');
}

function deliveryOf(job: string, fields: Readonly<Record<string, string>>): Delivery | null {
  if (fields.state === undefined) return null;
  return {
    job,
    state: fields.state as Delivery['state'],
    attempts: Number(fields.attempts),
    last_status: number(fields.last_status),
    next_at: number(fields.next_at),
    created_at: Number(fields.created_at),
    last_at: number(fields.last_at),
  };
}
