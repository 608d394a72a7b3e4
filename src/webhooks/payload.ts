import { createHmac } from 'node:crypto';
import type { Seal } from '../base/seal.ts';
import type { Job } from '../model/job.ts';
import { webhookBody } from '../model/job-json.ts';
import { writeTime } from '../model/timestamp.ts';
import { type OutgoingWebhook, openSealed } from '../store/webhooks/read-deliveries.ts';
import type { WebhookRequest } from './send-webhook.ts';

export interface PayloadOptions {
  readonly seal: Pick<Seal, 'open'>;
  /** Returns a link to the job's file, signed now; `null` when the file is gone. */
  readonly linkOf: (job: Job) => string | null;
}

/** Returns `null` when a sealed text of the webhook cannot be opened, because the secret was rotated out. */
export function makeRequest(
  kept: OutgoingWebhook,
  now: number,
  { seal, linkOf }: PayloadOptions,
  traceparent?: string,
): WebhookRequest | null {
  const { about, isReplayed } = kept;
  const content = 'job' in about ? webhookBody(about.job, linkOf(about.job)) : about.batch;
  const more = { ...(traceparent && { traceparent }), ...(isReplayed && { 'x-trawl-replayed': 'true' }) };
  return compose(kept, content, more, now, seal);
}

/** Returns the post of a test: signed like every webhook, with a body that names no job. */
export function makeTestRequest(
  to: SealedReceiver & { readonly id: string },
  now: number,
  seal: PayloadOptions['seal'],
): WebhookRequest | null {
  const content = { id: to.id, type: 'test', created_at: writeTime(now) };
  return compose(to, content, { 'x-trawl-test': 'true' }, now, seal);
}

type SealedReceiver = Pick<OutgoingWebhook, 'url' | 'authorization' | 'secret'>;

function compose(
  to: SealedReceiver,
  content: object & { readonly id: string },
  more: Readonly<Record<string, string>>,
  now: number,
  seal: PayloadOptions['seal'],
): WebhookRequest | null {
  const { authorization, secret } = openSealed(to, seal);
  if (authorization === null || secret === null) return null;
  const body = JSON.stringify(content);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'trawl',
    ...(authorization && { authorization }),
    ...(secret && sign(secret, content.id, now, body)),
    ...more,
  };
  return { url: to.url, headers, body };
}

/** The three headers of Standard Webhooks. */
function sign(secret: string, id: string, now: number, body: string): Record<string, string> {
  const seconds = String(Math.floor(now / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
}
