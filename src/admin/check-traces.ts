import type { Config } from '../base/config.ts';
import { type Finding, findingOf } from './doctor-finding.ts';

const maxMs = 5_000;

/** Checks that the collector takes a request without spans; nothing but traces is missing while it does not. */
export async function checkTraces({ tracesUrl: url }: Pick<Config, 'tracesUrl'>): Promise<Finding[]> {
  if (url === null) return [];
  const about = 'traces';
  const headers = { 'content-type': 'application/x-protobuf' };
  try {
    const answer = await fetch(url, { method: 'POST', headers, body: '', signal: AbortSignal.timeout(maxMs) });
    await answer.body?.cancel();
    const text = answer.ok ? `${url} takes spans.` : `${url} answers ${answer.status} to spans: they are dropped.`;
    return [findingOf(answer.ok, about, text, 'note')];
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : (error as Error);
    return [findingOf(false, about, `${url} cannot be asked: ${cause.message}. Spans are dropped.`, 'note')];
  }
}
