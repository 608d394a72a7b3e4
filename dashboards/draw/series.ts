/** A moment of a history. */
export interface Moment {
  /** Seconds since its start. */
  readonly at: number;
  /** Seconds since the fault began; negative before, and always in a healthy history. */
  readonly since: number;
  /** From 0 to 1, as busy as the service is. */
  readonly busy: number;
  /** End of the history, in seconds since 1970. */
  readonly end: number;
  /** From 0 to 1, a curve that goes its own way in each series. */
  readonly random: () => number;
}

export type Labels = Readonly<Record<string, string>>;
type Value = number | ((moment: Moment) => number);

/** Series of one metric: a gauge has its value, a counter its growth each second, a histogram observations each second and their mean. */
export interface Source {
  readonly metric: string;
  readonly labels: Labels;
  readonly kind: 'gauge' | 'counter' | 'histogram';
  /** `null` where the series is not there. */
  readonly value: (moment: Moment) => number | null;
  readonly mean: (moment: Moment) => number;
}

const call = (value: Value) => (typeof value === 'function' ? value : () => value);

export function gauge(metric: string, labels: Labels, value: Value): Source {
  return { metric, labels, kind: 'gauge', value: call(value), mean: () => 0 };
}

export function counter(metric: string, labels: Labels, perSecond: Value): Source {
  return { metric, labels, kind: 'counter', value: call(perSecond), mean: () => 0 };
}

export function histogram(metric: string, labels: Labels, perSecond: Value, mean: Value): Source {
  return { metric, labels, kind: 'histogram', value: call(perSecond), mean: call(mean) };
}

export interface HistoryOptions {
  /** End of the history, in seconds since 1970. */
  readonly end: number;
  readonly hours: number;
  readonly stepSeconds: number;
  /** How long before its end the fault begins; without one there is no fault. */
  readonly faultSeconds: number | null;
  /** Upper bounds of the buckets of a histogram. */
  readonly bucketsOf: (metric: string) => readonly number[];
}

const daySeconds = 10_800;
const knotSeconds = 900;

/** Writes series as OpenMetrics. The same sources give the same text. */
export function writeHistory(sources: readonly Source[], options: HistoryOptions): string {
  const families = Map.groupBy(sources, ({ metric }) => metric);
  const lines: string[] = [];
  for (const [metric, all] of families) {
    const kind = all[0]!.kind;
    lines.push(`# TYPE ${kind === 'counter' ? metric.replace(/_total$/, '') : metric} ${kind}`);
    for (const source of all) lines.push(...linesOf(source, options));
  }
  return `${lines.join('\n')}\n# EOF\n`;
}

function linesOf(source: Source, { end, hours, stepSeconds, faultSeconds, bucketsOf }: HistoryOptions): string[] {
  const { metric, labels, kind, value, mean } = source;
  const noise = makeNoise(metric + JSON.stringify(labels));
  const bounds = kind === 'histogram' ? [...bucketsOf(metric), Number.POSITIVE_INFINITY] : [];
  const series: string[][] = [];
  // The name and the labels of a series stand in each of its lines, and are put together once.
  const open = (name: string, more: Labels = {}) => {
    const words = Object.entries({ ...labels, ...more }).map(([label, text]) => `${label}="${text}"`);
    const start = `${name}{${words.join(',')}}`;
    const lines: string[] = [];
    series.push(lines);
    return (number: number, time: number) => lines.push(`${start} ${Number(number.toFixed(4))} ${time}`);
  };
  const put = {
    value: open(metric),
    buckets: bounds.map((bound) => open(`${metric}_bucket`, { le: String(bound).replace('Infinity', '+Inf') })),
    sum: open(`${metric}_sum`),
    count: open(`${metric}_count`),
  };
  const sums = { count: 0, total: 0, buckets: bounds.map(() => 0) };
  const length = hours * 3600;
  for (let at = 0; at <= length; at += stepSeconds) {
    const time = end - length + at;
    const since = faultSeconds === null ? Number.NEGATIVE_INFINITY : at - (length - faultSeconds);
    const moment: Moment = { at, since, end, busy: busyAt(at), random: () => noise(at) };
    const now = value(moment);
    if (now === null) continue;
    if (kind === 'gauge') {
      put.value(now, time);
      continue;
    }
    const grown = Math.max(0, now) * stepSeconds;
    sums.count += grown;
    if (kind === 'counter') {
      put.value(sums.count, time);
      continue;
    }
    const average = mean(moment);
    sums.total += grown * average;
    for (const [n, bound] of bounds.entries()) {
      sums.buckets[n]! += grown * (1 - Math.exp(-bound / average));
      put.buckets[n]!(sums.buckets[n]!, time);
    }
    put.sum(sums.total, time);
    put.count(sums.count, time);
  }
  return series.flat();
}

function busyAt(at: number): number {
  return 0.5 + 0.35 * Math.sin((at / daySeconds) * 2 * Math.PI);
}

/** Returns a curve that a name alone decides. */
function makeNoise(name: string): (at: number) => number {
  let seed = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 2_147_483_648, 7);
  const knots: number[] = [];
  const knot = (n: number) => {
    while (knots.length <= n) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      knots.push(seed / 2_147_483_648);
    }
    return knots[n]!;
  };
  return (at) => {
    const [n, part] = [Math.floor(at / knotSeconds), (at % knotSeconds) / knotSeconds];
    return knot(n) * (1 - part) + knot(n + 1) * part;
  };
}
