import { hostname } from 'node:os';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from './log.ts';
import { onceAMinute } from './once-a-minute.ts';
import type { EndedSpan, Traces } from './traces.ts';
import { version } from './version.ts';

interface TraceOptions {
  readonly url: string;
  /** Called with the number of spans that were sent or given up. */
  readonly count: (outcome: 'exported' | 'dropped', spans: number) => void;
  readonly log: Log;
}

/** Spans that wait or are on their way, of about 1 KB each. */
const maxWaiting = 10_000;
const batch = { maxExportBatchSize: 500, scheduledDelayMillis: 1_000, exportTimeoutMillis: 10_000 };
/** Timeout of one batch, with the SDK's retries. */
const exportMs = 5_000;
const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** Sends spans by OTLP over HTTP. While the collector is away they are counted and dropped, and nothing else notices. */
export function openOtlpTraces({ url, count, log }: TraceOptions): Traces {
  const watched = countExports(new OTLPTraceExporter({ url, timeoutMillis: exportMs }), count, log);
  const ids = { traceId: '', spanId: '' };
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'trawl',
      'service.version': version,
      'service.instance.id': hostname(),
    }),
    // Several processes make the spans of one job: they agree on ids that follow from the job.
    idGenerator: { generateTraceId: () => ids.traceId, generateSpanId: () => ids.spanId },
    spanProcessors: [watched],
  });
  const tracer = provider.getTracer('trawl', version);
  return {
    record: (span) => {
      Object.assign(ids, { traceId: span.traceId, spanId: span.spanId });
      // A number would be taken for a time since the start of this process if it lies before that.
      const start = { kind: kinds[span.kind], startTime: new Date(span.beganAt), attributes: span.attributes };
      const made = tracer.startSpan(span.name, start, parentOf(span));
      if (span.failure !== null) made.setStatus({ code: SpanStatusCode.ERROR, message: span.failure });
      made.end(new Date(Math.max(span.beganAt, span.endedAt)));
    },
    close: () => provider.shutdown(),
  };
}

/** Sends a collector a request without spans, as they are sent; returns the status, or the error of the connection, of a failure. */
export async function askCollector(url: string): Promise<number | Error | null> {
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: exportMs });
  const { promise, resolve } = Promise.withResolvers<Error | undefined>();
  exporter.export([], ({ error }) => resolve(error));
  const error = await promise;
  await exporter.shutdown();
  if (error === undefined) return null;
  return 'code' in error && typeof error.code === 'number' ? error.code : error;
}

function parentOf({ traceId, parentId }: EndedSpan) {
  if (parentId === null) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags: TraceFlags.SAMPLED });
}

/** The SDK bounds only the spans that wait for their batch, and tells nobody of those that it drops. */
function countExports(to: SpanExporter, count: TraceOptions['count'], log: Log): SpanProcessor {
  let waiting = 0;
  const warn = onceAMinute((error: unknown) =>
    log.warn('spans are dropped: the collector does not take them', { error }),
  );
  const drop = (spans: number, error: unknown) => {
    count('dropped', spans);
    warn(error);
  };
  const exporter: SpanExporter = {
    export: (spans, done) =>
      to.export(spans, (result) => {
        waiting -= spans.length;
        if (result.code === 0) count('exported', spans.length);
        else drop(spans.length, result.error);
        done(result);
      }),
    shutdown: () => to.shutdown(),
  };
  const batches = new BatchSpanProcessor({ ...batch, exporter, maxQueueSize: maxWaiting });
  const onEnd = (span: ReadableSpan) => {
    if (waiting >= maxWaiting) return drop(1, undefined);
    waiting++;
    batches.onEnd(span);
  };
  return {
    onStart: () => {},
    onEnd,
    forceFlush: () => batches.forceFlush(),
    // A batch that cannot be sent was counted.
    shutdown: () => batches.shutdown().catch(() => undefined),
  };
}
