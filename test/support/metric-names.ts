import { makeMetrics } from '../../src/base/metrics.ts';
import { parseQuery } from './promql.ts';
import { read } from './tree.ts';

/** Labels that Prometheus adds to every series when it reads it. */
const ofPrometheus = ['namespace', 'instance', 'pod', 'job'];

/** Labels of every series that trawl shows, by its name; a histogram is three. */
const labelsOf = new Map<string, readonly string[]>();
for (const metric of makeMetrics().registry.getMetricsAsArray()) {
  const { name, labelNames = [], buckets } = metric as { name: string; labelNames?: string[]; buckets?: number[] };
  if (buckets) labelsOf.set(`${name}_bucket`, [...labelNames, 'le']);
  for (const series of buckets ? [`${name}_sum`, `${name}_count`] : [name]) labelsOf.set(series, labelNames);
}

/** Series of Kubernetes that alerts may read. */
for (const what of ['available', 'capacity'])
  labelsOf.set(`kubelet_volume_stats_${what}_bytes`, ['persistentvolumeclaim']);

/** Values of each label whose set docs/metrics.md names one by one. */
const valuesOf = new Map(
  [...read('docs/metrics.md').matchAll(/^\| `(\w+)` \| (`[^|]*) \|$/gm)]
    .filter(([, label]) => !['trawl_', 'route'].some((start) => label!.startsWith(start)))
    .map(([, label, text]) => [label!, [...text!.matchAll(/`([^`]+)`/g)].map(([, value]) => value!)] as const),
);

/** Returns what a query names that trawl does not show. */
export function listUnknown(query: string): string[] {
  const { selectors, groupings, errors } = parseQuery(query);
  const known = new Set([...ofPrometheus, ...selectors.flatMap(({ metric }) => labelsOf.get(metric) ?? [])]);
  const wrong = selectors.flatMap(({ metric, matchers }) => {
    const labels = labelsOf.get(metric);
    if (!labels) return [`metric ${metric}`];
    return matchers.flatMap(({ label, operator, value }) => {
      if (ofPrometheus.includes(label)) return [];
      if (!labels.includes(label)) return [`label ${label} of ${metric}`];
      const values = valuesOf.get(label);
      const named = operator.includes('~') ? value.split('|') : [value];
      return values ? named.filter((one) => !values.includes(one) && one !== '').map((one) => `${label}="${one}"`) : [];
    });
  });
  return [...errors, ...wrong, ...groupings.filter((label) => !known.has(label)).map((label) => `label ${label}`)];
}

/** Returns the metrics that a query reads, by the names that docs/metrics.md has. */
export function listMetrics(query: string): string[] {
  return parseQuery(query).selectors.map(({ metric }) => {
    const [, base] = /^(.*)_(?:bucket|sum|count)$/.exec(metric) ?? [];
    return base && labelsOf.has(`${base}_bucket`) ? base : metric;
  });
}
