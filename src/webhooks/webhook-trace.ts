import { randomBytes } from 'node:crypto';
import type { Traces } from '../base/traces.ts';
import { jobSpanId } from '../model/job-spans.ts';
import { readTraceparent, type TraceContext, writeTraceparent } from '../model/trace-context.ts';
import type { OutgoingWebhook } from '../store/webhooks/read-deliveries.ts';

/** Span of one attempt to deliver the webhook of a job. */
interface WebhookTrace extends TraceContext {
  readonly parentId: string;
  /** Header for the receiver, whose own spans are then children of this one. */
  readonly traceparent: string;
}

/** Returns `null` for a job that is not traced, and for batches, whose jobs may belong to many traces. */
export function beginWebhookTrace({ about }: Pick<OutgoingWebhook, 'about'>): WebhookTrace | null {
  const request = 'job' in about ? readTraceparent(about.job.trace?.parent) : null;
  if (request === null || !('job' in about)) return null;
  const own = { traceId: request.traceId, spanId: randomBytes(8).toString('hex') };
  return { ...own, parentId: jobSpanId(request, about.job.id), traceparent: writeTraceparent(own) };
}

export function recordWebhook(
  traces: Traces,
  { traceId, spanId, parentId }: WebhookTrace,
  jobId: string,
  ended: {
    readonly beganAt: number;
    readonly endedAt: number;
    readonly attempt: number;
    readonly outcome: string;
    readonly status: number | null;
  },
): void {
  const { beganAt, endedAt, attempt, outcome, status } = ended;
  const attributes = { 'trawl.job.id': jobId, 'trawl.attempt': attempt, 'trawl.outcome': outcome };
  traces.record({
    ...{ name: 'webhook', kind: 'client', traceId, spanId, parentId, beganAt, endedAt },
    failure: outcome === 'delivered' ? null : outcome,
    attributes: status === null ? attributes : { ...attributes, 'http.response.status_code': status },
  });
}
