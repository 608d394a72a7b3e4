/** Selects the series of the chosen namespaces; without Kubernetes series have none, which `.*` matches too. */
const chosen = 'namespace=~"$namespace"';

/** Returns a metric of the chosen namespaces, with more matchers. */
export function of(metric: string, matchers = ''): string {
  return `trawl_${metric}{${[chosen, matchers].filter(Boolean).join(', ')}}`;
}

/** Returns those of some roles of which no process is seen, in each namespace that has others; `up` has all roles in it. */
export function rolesAway(roles: readonly string[]): string {
  const isAway = (role: string) =>
    `label_replace(max by (namespace) (${of('build_info')}) unless on (namespace) ${of('build_info', `role=~"up|${role}"`)}, "role", "${role}", "", "")`;
  return roles.map(isAway).join(' or ');
}

/** Returns how fast a counter grows, per second; grouped by labels where some are named. */
export function rate(metric: string, matchers = '', by = ''): string {
  return `sum ${by && `by (${by}) `}(rate(${of(metric, matchers)}[$__rate_interval]))`;
}

/** Returns a gauge that each part of a namespace shows as a whole, added up over the namespaces; grouped by labels where some are named. */
export function amount(metric: string, matchers = '', by = ''): string {
  const within = ['namespace', by].filter(Boolean).join(', ');
  return `sum ${by && `by (${by}) `}(max by (${within}) (${of(metric, matchers)}))`;
}

/** Returns by how much a counter grew in the time that is shown. */
export function growth(metric: string, matchers = '', by = ''): string {
  return `sum ${by && `by (${by}) `}(increase(${of(metric, matchers)}[$__range]))`;
}

/** Returns by how much a counter grew in the last half hour: a tile over the whole time that is shown hides a fault that has just begun. */
export function recently(metric: string, matchers = ''): string {
  return `sum (increase(${of(metric, matchers)}[30m]))`;
}

/** Returns by how much a counter of rare events grew in the hour before each moment. */
export function inHour(metric: string, by = ''): string {
  return `sum ${by && `by (${by}) `}(increase(${of(metric)}[1h]))`;
}

/** Returns a quantile of a histogram. */
export function quantile(share: number, metric: string, matchers = '', by = ''): string {
  const labels = ['le', by].filter(Boolean).join(', ');
  return `histogram_quantile(${share}, sum by (${labels}) (rate(${of(`${metric}_bucket`, matchers)}[$__rate_interval])))`;
}

/** Returns a share of events, 0 where none of the part has happened, and nothing where none of the whole has. */
export function share(part: string, whole: string): string {
  return `(${part} or vector(0)) / (${whole} > 0)`;
}

/** Returns the matcher of one bucket of a histogram: Prometheus 3 stores its bound 60 as 60.0, Prometheus 2 as it is shown. */
export function upTo(bound: number): string {
  return String.raw`le=~"${bound}(\\.0)?"`;
}
