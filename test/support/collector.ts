import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isListening } from '../../src/base/reach-server.ts';
import { freePort } from './free-port.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { tool } from './tools.ts';
import { until } from './until.ts';

/** A span as the collector understood it. */
export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  /** Code of the failure. */
  readonly failure: string | undefined;
  readonly attributes: Readonly<Record<string, string | number>>;
}

/** An OpenTelemetry collector on loopback. */
export interface Collector {
  /** For TRAWL_TRACES_URL. */
  readonly url: string;
  /** All spans that it has taken so far. */
  spans(): SeenSpan[];
  /** The resources that sent them, each once. */
  resources(): string[];
  stop(): Promise<void>;
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: string;
}
interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}
type OtlpSpan = Omit<SeenSpan, 'failure' | 'attributes'> & {
  readonly attributes?: readonly OtlpAttribute[];
  readonly status?: { readonly code?: number; readonly message?: string };
};
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const failed = 2;

/** Starts a collector that hands what it takes to this process, as JSON. */
export async function startCollector(): Promise<Collector> {
  const [port, behind] = [await freePort(), await startReceiver()];
  const settings = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: {
      otlp_http: { endpoint: behind.url, encoding: 'json', compression: 'none', sending_queue: { enabled: false } },
    },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: { traces: { receivers: ['otlp'], exporters: ['otlp_http'] } },
    },
  };
  const child = spawn(tool('otel-collector'), [`--config=yaml:${JSON.stringify(settings)}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text) => {
    said += String(text);
  });
  await until(() => child.exitCode !== null || isListening({ host: '127.0.0.1', port }), 20, 'the collector answers');
  if (child.exitCode !== null) throw new Error(`the collector ended: ${said}`);
  const bodies = () => behind.posted.map(({ body }) => body as OtlpBody).flatMap((body) => body.resourceSpans);
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    spans: () => bodies().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(readSpan))),
    resources: () => [...new Set(bodies().map(({ resource }) => JSON.stringify(readAttributes(resource.attributes))))],
    stop: () => end(child, behind),
  };
}

function readSpan({ attributes, status, ...span }: OtlpSpan): SeenSpan {
  const failure = status?.code === failed ? status.message : undefined;
  return { ...span, parentSpanId: span.parentSpanId ?? '', failure, attributes: readAttributes(attributes ?? []) };
}

function readAttributes(attributes: readonly OtlpAttribute[]): SeenSpan['attributes'] {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]));
}

async function end(child: ChildProcess, behind: Receiver): Promise<void> {
  if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
  await behind.stop();
}
