import { sendRequest } from '../base/http-client.ts';
import type { Metrics } from '../base/metrics.ts';
import type { ServerAddress } from '../base/server-address.ts';
import { shareRun } from '../base/single-flight.ts';

const answerMs = 1_000;
const maxAnswerBytes = 1024 * 1024;

const countLines = /^trawl_egress_connections_total\{verdict="(\w+)"\} (\d+)$/gm;

/**
 * Counts in this process what the child `egress` counts: each scrape reads its probes and adds what is new. The counters are absent,
 * not 0, until it is read for the first time. Returns a function that must be called at each start of the child, which begins at 0
 * while our counters go on.
 */
export function addEgressCounts(
  { egress_connections_total: counter, refreshers }: Pick<Metrics, 'egress_connections_total' | 'refreshers'>,
  probe: ServerAddress,
): () => void {
  const counted = new Map<string, number>();
  const add = (text: string) => {
    for (const [, verdict = '', count] of text.matchAll(countLines)) {
      counter.inc({ verdict }, Math.max(0, Number(count) - (counted.get(verdict) ?? 0)));
      counted.set(verdict, Number(count));
    }
  };
  // Scrapes at the same time share one look: a late answer would add what the other one has added.
  const { run } = shareRun(async () => {
    const to = { server: probe, path: '/metrics' };
    const signal = AbortSignal.timeout(answerMs);
    const answer = await sendRequest({ to, method: 'GET', signal, maxAnswerBytes }).catch(() => null);
    // A child that is away is started again; until then the counters keep their values.
    if (answer !== null) add(answer.text);
  });
  refreshers.add(run);
  return () => counted.clear();
}
