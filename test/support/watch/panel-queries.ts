import type { Panel } from '../../../dashboards/panels.ts';
import { type Prometheus, type Series, watchedNamespace } from './prometheus.ts';

/** Returns the series of a query as Grafana would ask for it. */
export function askFor({ ask }: Prometheus, query: string): Promise<readonly Series[]> {
  const text = query
    .replaceAll('$namespace', watchedNamespace)
    .replaceAll('$__rate_interval', '20s')
    .replaceAll('$__range', '1m');
  return ask(text);
}

/** Asks every query of a dashboard, and returns the panels that have no data and no words for that; throws where a query is refused. */
export async function findEmpty(
  prometheus: Prometheus,
  rows: Readonly<Record<string, readonly Panel[]>>,
): Promise<string[]> {
  const asked = Object.values(rows)
    .flat()
    .flatMap(({ title, queries, empty }) => Object.keys(queries).map((query) => ({ title, query, empty })));
  const found = await Promise.all(
    asked.map(async ({ title, query, empty }) => ({ title, empty, series: await askFor(prometheus, query) })),
  );
  return found.filter(({ empty, series }) => empty === undefined && series.length === 0).map(({ title }) => title);
}
