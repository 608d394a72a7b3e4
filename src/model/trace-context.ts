import { hash } from 'node:crypto';

/** Place in a trace: what happens there is a child of this span. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
}

/** Longest header that is read: a later version of W3C Trace Context may append fields. */
const maxChars = 256;
const form = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Reads a `traceparent` of W3C Trace Context; `null` for any other text. */
export function readTraceparent(header: string | undefined): (TraceContext & { readonly isSampled: boolean }) | null {
  if (header === undefined || header.length > maxChars) return null;
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(header) ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceparent({ traceId, spanId }: TraceContext): string {
  return `00-${traceId}-${spanId}-01`;
}

/** Field of log lines about what is traced; none for anything else. */
export function traceField(trace: Pick<TraceContext, 'traceId'> | null): { readonly trace_id?: string } {
  return trace === null ? {} : { trace_id: trace.traceId };
}

/** Id of a span that every process derives alike, so that its children may be sent before it by another process. */
export function spanIdOf({ traceId, spanId }: TraceContext, jobId: string, words: string): string {
  return hash('sha256', `${traceId} ${spanId} ${jobId} ${words}`).slice(0, 16);
}
