import { randomBytes } from 'node:crypto';
import type { Traces } from '../base/traces.ts';
import { readTraceparent } from '../model/trace-context.ts';
import type { ApiCall, RequestTrace } from './api-call.ts';
import type { ApiReply } from './reply.ts';

/** Begins the span of a request: in the trace of its caller, or in one of its own; `null` when the caller does not record its trace. */
export function beginTrace(traceparent: string | undefined): RequestTrace | null {
  const caller = readTraceparent(traceparent);
  if (caller && !caller.isSampled) return null;
  const spanId = randomBytes(8).toString('hex');
  return { traceId: caller?.traceId ?? randomBytes(16).toString('hex'), spanId, parentId: caller?.spanId ?? null };
}

/** Records an answered request. One without a known key leaves no span, so that nobody else fills the collector. */
export function recordRequest(
  traces: Traces,
  { req, route, trace, began, logged }: Pick<ApiCall, 'req' | 'route' | 'trace' | 'began' | 'logged'>,
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
