import type { Traces } from '../base/traces.ts';
import { within } from '../base/within.ts';
import type { RunningRole } from './run-role.ts';

const closeMs = 3_000;

/** Opens the way to the collector, or returns `null` where the operator has configured none: the SDK of OpenTelemetry is loaded only then. */
export async function openTraces(
  running: Pick<RunningRole, 'config' | 'log' | 'metrics' | 'stop'>,
): Promise<Traces | null> {
  const { config, log, metrics, stop } = running;
  if (config.tracesUrl === null) return null;
  const { openOtlpTraces } = await import('../base/otlp-traces.ts');
  const count = (outcome: string, spans: number) => metrics.spans_total.inc({ outcome }, spans);
  const traces = openOtlpTraces({ url: config.tracesUrl, count, log: log.with({ part: 'traces' }) });
  // A collector that is away must not fail the stop of the role.
  stop.add('traces', () => within(closeMs, traces.close()));
  return traces;
}
