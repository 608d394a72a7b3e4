import { randomBytes } from 'node:crypto';
import type { Traces } from '../base/traces.ts';
import { readTraceparent, type TraceContext } from '../model/trace-context.ts';
import type { ApiReply } from './reply.ts';

/** Span of a request; `parentId` is that of its caller, where it sends one. */
export interface RequestTrace extends TraceContext {
  readonly parentId: string | null;
}

/** Begins the span of a request: in the trace of its caller, or in one of its own; `null` when the caller does not record its trace. */
export function beginTrace(traceparent: string | undefined): RequestTrace | null {
  const caller = readTraceparent(traceparent);
  if (caller && !caller.isSampled) return null;
  const spanId = randomBytes(8).toString('hex');
  return { traceId: caller?.traceId ?? randomBytes(16).toString('hex'), spanId, parentId: caller?.spanId ?? null };
}

/** The parts of a call that its span tells of. */
interface TracedCall {
  readonly req: { readonly method: string };
  readonly route: { readonly template: string } | null;
  readonly trace: RequestTrace | null;
  /** Arrival, by the monotonic clock. */
  readonly began: number;
  /** `null` where the key of the call is not known. */
  readonly logged: unknown;
}

/** Records an answered request. One without a known key leaves no span, so that nobody else fills the collector. */
export function recordRequest(
  traces: Traces,
  { req, route, trace, began, logged }: TracedCall,
  reply: ApiReply | null,
  status: number,
  now: number,
): void {
  if (trace === null || route === null || logged === null) return;
  const { job_id: jobId, batch_id: batchId } = (reply?.body ?? {}) as { job_id?: unknown; batch_id?: unknown };
  const code = reply?.headers?.['x-error-code'];
  traces.record({
    ...trace,
    name: `${req.method} ${route.template}`,
    kind: 'server',
    beganAt: now - (performance.now() - began),
    endedAt: now,
    // A 4xx is a fault of the caller, so the span is no error of the service.
    failure: status >= 500 ? (code ?? String(status)) : null,
    attributes: {
      'http.request.method': req.method,
      'http.route': route.template,
      'http.response.status_code': status,
      ...(code !== undefined && { 'error.type': code }),
      ...(typeof jobId === 'string' && { 'trawl.job.id': jobId }),
      ...(typeof batchId === 'string' && { 'trawl.batch.id': batchId }),
    },
  });
}
