import { randomBytes } from 'node:crypto';
import type { Traces } from '../base/traces.ts';
import { jobSpanId } from '../model/job-spans.ts';
import { readTraceparent, type TraceContext, writeTraceparent } from '../model/trace-context.ts';
import type { OutgoingWebhook } from '../store/webhooks/read-deliveries.ts';

/** Span of one attempt to deliver a webhook: a child of the job, or of the request that made the batch. */
interface WebhookTrace extends TraceContext {
  readonly parentId: string;
  /** Attribute that names the job or the batch. */
  readonly idName: 'trawl.job.id' | 'trawl.batch.id';
  /** Header for the receiver, whose own spans are then children of this one. */
  readonly traceparent: string;
}

/** Returns `null` for a job or a batch that is not traced. */
export function beginWebhookTrace(webhook: Pick<OutgoingWebhook, 'about' | 'requestTrace'>): WebhookTrace | null {
  const { about, requestTrace } = webhook;
  const request = readTraceparent(requestTrace ?? undefined);
  if (request === null) return null;
  const own = { traceId: request.traceId, spanId: randomBytes(8).toString('hex') };
  const parentId = 'job' in about ? jobSpanId(request, about.job.id) : request.spanId;
  const idName = 'job' in about ? 'trawl.job.id' : 'trawl.batch.id';
  return { ...own, parentId, idName, traceparent: writeTraceparent(own) };
}

export function recordWebhook(
  traces: Traces,
  { traceId, spanId, parentId, idName }: WebhookTrace,
  id: string,
  ended: {
    readonly beganAt: number;
    readonly endedAt: number;
    readonly attempt: number;
    readonly outcome: string;
    readonly status: number | null;
  },
): void {
  const { beganAt, endedAt, attempt, outcome, status } = ended;
  const attributes = { [idName]: id, 'trawl.attempt': attempt, 'trawl.outcome': outcome };
  traces.record({
    ...{ name: 'webhook', kind: 'client', traceId, spanId, parentId, beganAt, endedAt },
    failure: outcome === 'delivered' ? null : outcome,
    attributes: status === null ? attributes : { ...attributes, 'http.response.status_code': status },
  });
}
