import { createHmac } from 'node:crypto';
import type { Seal } from '../base/seal.ts';
import type { Job } from '../model/job.ts';
import { webhookBody } from '../model/job-json.ts';
import type { OutgoingWebhook } from '../store/webhooks/read-deliveries.ts';
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
  const authorization = kept.authorization && seal.open('webhook', kept.authorization);
  const secret = kept.secret && seal.open('webhook_secret', kept.secret);
  if (authorization === null || secret === null) return null;
  const { about } = kept;
  const content = 'job' in about ? webhookBody(about.job, linkOf(about.job)) : about.batch;
  const body = JSON.stringify(content);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'trawl',
    ...(authorization && { authorization }),
    ...(secret && sign(secret, content.id, now, body)),
    ...(traceparent && { traceparent }),
    ...(kept.isReplayed && { 'x-trawl-replayed': 'true' }),
  };
  return { url: kept.url, headers, body };
}

/** The three headers of Standard Webhooks. */
function sign(secret: string, id: string, now: number, body: string): Record<string, string> {
  const seconds = String(Math.floor(now / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
}
