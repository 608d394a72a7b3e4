import { keys } from './keys.ts';
import { number, pairs, run, type Store, text } from './script.ts';
import { endWebhook as endWebhookScript } from './scripts/end-webhook.ts';
import { takeWebhook as takeWebhookScript } from './scripts/take-webhook.ts';

const attemptsMost = 3;

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
}

/** Webhooks whose next attempt may begin, earliest first. */
export async function dueWebhooks(store: Store, limit: number): Promise<Due[]> {
  const members = (await store.connection.read(
    ['ZRANGEBYSCORE', keys.webhooks, '-inf', String(store.clock.now()), 'LIMIT', '0', String(limit)],
    keys.webhooks,
  )) as string[];
  return members.map((member) => {
    const cut = member.lastIndexOf('/');
    return { receiver: member.slice(0, cut), job: member.slice(cut + 1) };
  });
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

export async function readDelivery(store: Store, job: string): Promise<Delivery | null> {
  const fields = pairs(await store.connection.read(['HGETALL', keys.webhook(job)], keys.webhook(job)));
  if (fields.state === undefined) return null;
  return {
    job,
    state: fields.state as Delivery['state'],
    attempts: Number(fields.attempts),
    last_status: number(fields.last_status),
    next_at: number(fields.next_at),
  };
}
