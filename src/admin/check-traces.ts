import type { Config } from '../base/config.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

/** Checks that the collector takes a request without spans; nothing but traces is missing while it does not. */
export async function checkTraces({ tracesUrl: url }: Pick<Config, 'tracesUrl'>): Promise<Finding[]> {
  if (url === null) return [];
  const about = 'traces';
  // Loaded only here, because the SDK of OpenTelemetry is large.
  const { askCollector } = await import('../base/otlp-traces.ts');
  const failure = await askCollector(url);
  if (failure === null) return [findingOf(true, about, `${url} takes spans.`)];
  const text =
    typeof failure === 'number'
      ? `${url} answers ${failure} to spans: they are dropped.`
      : `${url} cannot be asked: ${failure.message}. Spans are dropped.`;
  return [findingOf(false, about, text, 'note')];
}
