/** One part of a trace that has ended. Times are milliseconds by the clock of Redis. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'internal';
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentId: string | null;
  readonly beganAt: number;
  readonly endedAt: number;
  /** Code of the failure; `null` when it went well. */
  readonly failure: string | null;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** Sends spans to a collector. It is absent (`null`) where TRAWL_TRACES_URL is not set, and with it the SDK of OpenTelemetry. */
export interface Traces {
  /** Queues a span, or drops it where too many wait; never throws and waits for nothing. */
  readonly record: (span: EndedSpan) => void;
  /** Sends the spans that wait. */
  readonly close: () => Promise<void>;
}
